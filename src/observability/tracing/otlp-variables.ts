// Checks the environment variables of the OTLP exporter and of its batches. The SDK ignores some mistakes in these
// variables. Because of other mistakes, it drops spans.
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { maxFileBytes, type ReadFile, tryRead } from '../../config/read-file.ts'

/** Returns the value of a variable; undefined if it is empty. */
type Get = (name: string) => string | undefined

interface Findings {
  /** One sentence for each variable whose value makes tracing impossible. */
  readonly problems: readonly string[]
  /** One sentence for each variable whose value the SDK ignores or replaces. */
  readonly warnings: readonly string[]
}

/** @param readFile reads certificate files */
export function checkOtlpVariables(get: Get, readFile: ReadFile): Findings {
  const found = [
    ...headerFindings(get),
    ...numberFindings(get),
    ...compressionFindings(get),
    ...fileFindings(get, readFile),
  ]
  const sentences = (kind: Finding['kind']) =>
    found.filter(finding => finding.kind === kind).map(({ name, message }) => `${name}: ${message}`)
  return { problems: sentences('problem'), warnings: sentences('warning') }
}

interface Finding {
  readonly kind: 'problem' | 'warning'
  readonly name: string
  readonly message: string
}

/** Checks two variables, because the exporter sends the headers of both variables. */
function* headerFindings(get: Get): Generator<Finding> {
  for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS']) {
    const text = get(name) ?? ''
    if (/^["']/.test(text)) {
      yield {
        kind: 'problem',
        name,
        message: 'begins with a quotation mark. Write name=value without quotation marks.',
      }
      continue
    }
    for (const [index, entry] of text.split(',').entries()) {
      const message = entry.trim() === '' ? undefined : entryError(entry)
      if (message !== undefined) yield { kind: 'problem', name, message: `entry ${index + 1} ${message}` }
      else if (/^[^=]*=\s*$/.test(entry))
        yield { kind: 'warning', name, message: `entry ${index + 1} has no value and is not sent` }
    }
  }
}

/** Headers that the exporter sets itself, because the exporter controls the connection and the framing of the body. */
const ownFields = ['connection', 'content-length', 'expect', 'trailer', 'transfer-encoding', 'upgrade']

/**
 * Checks one entry of a list of headers. The message never repeats the entry, because even the name may be secret. For
 * example, if a secret value contains a comma, the rest of the value looks like the name of another header.
 */
function entryError(entry: string): string | undefined {
  const [, rawName = '', rawValue] = /^([^=]*)=(.*)$/s.exec(entry) ?? []
  if (rawName.trim() === '' || rawValue === undefined) {
    return 'is not name=value. Write a comma in a value as %2C.'
  }
  // The SDK cuts off an entry at its first `;`.
  if (entry.includes(';')) return 'contains a semicolon. Write it as %3B.'
  let name: string
  let value: string
  try {
    name = decodeURIComponent(rawName.trim())
    value = decodeURIComponent(rawValue.trim())
  } catch {
    return 'contains a % without a valid escape such as %2C. Write it as %25.'
  }
  try {
    validateHeaderName(name)
  } catch {
    return 'has a name with characters that are not allowed in a header name'
  }
  if (ownFields.includes(name.toLowerCase()))
    return `sets the header ${name.toLowerCase()}, which the gateway sets itself`
  try {
    validateHeaderValue(name, value)
  } catch {
    return 'has a value with characters that are not allowed in a header'
  }
  return undefined
}

/** The longest timer that Node supports. Node would run a longer timer immediately. */
const maxTimerMs = 2 ** 31 - 1

const numbers: readonly { name: string; least: number; most: number }[] = [
  { name: 'OTEL_EXPORTER_OTLP_TIMEOUT', least: 1, most: maxTimerMs },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', least: 1, most: maxTimerMs },
  { name: 'OTEL_BSP_SCHEDULE_DELAY', least: 0, most: maxTimerMs },
  { name: 'OTEL_BSP_EXPORT_TIMEOUT', least: 1, most: maxTimerMs },
  { name: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', least: 1, most: Number.MAX_SAFE_INTEGER },
  { name: 'OTEL_BSP_MAX_QUEUE_SIZE', least: 1, most: Number.MAX_SAFE_INTEGER },
]

function* numberFindings(get: Get): Generator<Finding> {
  for (const { name, least, most } of numbers) {
    const text = get(name)
    const number = Number(text)
    if (text === undefined || (Number.isInteger(number) && number >= least && number <= most)) continue
    if (Number.isNaN(number)) {
      yield { kind: 'warning', name, message: 'is not a number; the default is used' }
    } else yield { kind: 'problem', name, message: `must be a whole number from ${least} to ${most}` }
  }
}

function* compressionFindings(get: Get): Generator<Finding> {
  for (const name of ['OTEL_EXPORTER_OTLP_COMPRESSION', 'OTEL_EXPORTER_OTLP_TRACES_COMPRESSION']) {
    if (['none', 'gzip', undefined].includes(get(name))) continue
    yield { kind: 'warning', name, message: 'is not gzip or none; traces are sent without compression' }
  }
}

/**
 * Checks that the certificate files are readable. If a file is not readable, the SDK would use the certificate
 * authorities of Node, and no client certificate.
 */
function* fileFindings(get: Get, readFile: ReadFile): Generator<Finding> {
  for (const kind of ['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY']) {
    const specific = `OTEL_EXPORTER_OTLP_TRACES_${kind}`
    const name = get(specific) === undefined ? `OTEL_EXPORTER_OTLP_${kind}` : specific
    const path = get(name)
    const message = path === undefined ? undefined : tryRead(path, maxFileBytes, readFile).error
    if (message !== undefined) yield { kind: 'problem', name, message }
  }
}
