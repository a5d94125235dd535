// The head of an upstream's response as the client receives it: headers, trailers, 1xx and reason phrase (CONTRACT §6).
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'

/** Changes that a route, or CORS, makes to the headers of an upstream's response. */
export interface ResponseHeaderRules {
  /** Names and values in turn. */
  readonly set: readonly string[]
  /** Names in lower case, including those in `set`. */
  readonly remove: ReadonlySet<string>
}

/**
 * @param status of the response: 204 and 1xx have no `Content-Length`
 * @param rawHeaders names and values in turn, as undici passes them
 * @param requestId added if the upstream sends none
 * @param canSendTrailers the response can carry trailers: node:http refuses their announcement otherwise
 * @throws Refusal 502 if the body has a coding other than `chunked`: it would be relayed as if it had none
 */
export function relayHeaders(
  status: number,
  rawHeaders: readonly Buffer[],
  requestId: string,
  rules?: ResponseHeaderRules,
  canSendTrailers = false,
): string[] {
  const fields: string[] = []
  let connectionOptions: Set<string> | undefined
  let via = ''
  let hasRequestId = false
  let isChunked = false
  let trailerFields: string[] | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const { name, lower, isDropped } = describeHeaderName(text(rawHeaders[i]))
    if (isDropped) {
      if (lower === 'connection')
        connectionOptions = addConnectionOptions(text(rawHeaders[i + 1]), connectionOptions)
      else if (lower === 'transfer-encoding') {
        if (isChunked || !isOnlyChunked(text(rawHeaders[i + 1]))) throw unsupportedTransferCoding()
        isChunked = true
      } else if (lower === 'trailer')
        trailerFields = [...(trailerFields ?? []), name, text(rawHeaders[i + 1])]
      continue
    }
    const value = text(rawHeaders[i + 1])
    if (lower === 'via') via = via === '' ? value : `${via}, ${value}`
    else if (!rules?.remove.has(lower)) fields.push(name, value)
    if (lower === 'x-request-id') hasRequestId = true
  }
  let relayed = connectionOptions === undefined ? fields : without(connectionOptions, fields)
  // Clients would wait for a body that does not follow (RFC 9110 §8.6).
  if (status === 204 || status < 200) relayed = without(lengthOnly, relayed)
  if (trailerFields !== undefined && isChunked && canSendTrailers) relayed.push(...trailerFields)
  if (rules !== undefined) relayed.push(...rules.set)
  if (!hasRequestId || connectionOptions?.has('x-request-id')) relayed.push('x-request-id', requestId)
  relayed.push('via', via === '' ? '1.1 peage' : `${via}, 1.1 peage`)
  return relayed
}

/** Trailers pass the same filter as headers. */
export function relayTrailers(
  rawTrailers: readonly (string | Buffer)[],
  rules?: ResponseHeaderRules,
): [string, string][] {
  const trailers: [string, string][] = []
  for (let i = 0; i < rawTrailers.length; i += 2) {
    const { name, lower, isDropped } = describeHeaderName(text(rawTrailers[i]))
    if (!isDropped && !rules?.remove.has(lower)) trailers.push([name, text(rawTrailers[i + 1])])
  }
  return trailers
}

/**
 * undici decodes only `chunked`, and only once (RFC 9112 §6.1): not even `identity`, which RFC 7230 removed, and not
 * `chunked` followed by a tab.
 */
function isOnlyChunked(value: string): boolean {
  return value === 'chunked' || /^chunked *$/i.test(value)
}

function unsupportedTransferCoding(): Refusal {
  const cause = new Error('the upstream’s answer has a transfer coding other than chunked')
  return new Refusal('upstream_unreachable', { cause })
}

/** Headers named in `Connection` are hop-by-hop too, except Content-Length: it must not alter the framing. */
function addConnectionOptions(value: string, known: Set<string> | undefined): Set<string> | undefined {
  // The usual value; `keep-alive` is dropped whether it is named or not.
  if (value === 'keep-alive') return known
  const connectionOptions = known ?? new Set<string>()
  for (const option of value.toLowerCase().split(',')) connectionOptions.add(option.trim())
  connectionOptions.delete('content-length')
  return connectionOptions
}

const lengthOnly = new Set(['content-length'])

function without(names: ReadonlySet<string>, fields: string[]): string[] {
  const others: string[] = []
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string
    if (!names.has(name.toLowerCase())) others.push(name, fields[i + 1] as string)
  }
  return others
}

/** Preserves the bytes: Node writes latin1 back. */
function text(bytes: Buffer | string | undefined): string {
  return typeof bytes === 'string' ? bytes : (bytes as Buffer).toString('latin1')
}

interface HeaderName {
  /** As received. */
  readonly name: string
  readonly lower: string
  /**
   * Hop-by-hop (RFC 9110 §7.6.1), or only the gateway may send it. Clients recognise its refusals by `X-Peage-Error`.
   * `Alt-Svc` (RFC 7838) would send browsers past the gateway, to a port that the service names.
   */
  readonly isDropped: boolean
}

function describeHeaderName(name: string): HeaderName {
  const lower = name.toLowerCase()
  return { name, lower, isDropped: droppedNames.has(lower) || lower.startsWith('proxy-') }
}

const droppedNames = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-peage-error',
  'alt-svc',
  'alternate-protocol',
])

/** Such a response does not end by itself. @param fields its headers, names and values in turn */
export function isEventStream(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) {
    if (fields[i]?.toLowerCase() === 'content-type') return /^text\/event-stream\b/i.test(fields[i + 1] ?? '')
  }
  return false
}

/**
 * Relays an informational response with its Link headers only: Early Hints are for these (RFC 8297), and no other
 * header (a length, a cookie) reaches an intermediary that might take it for the final response's.
 * @param rawHeaders names and values in turn, as undici passes them
 */
export function writeInformational(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  rawHeaders: readonly Buffer[],
): void {
  // An HTTP/1.0 client does not know 1xx, and would take it for the final response.
  if (request.httpVersionMajor === 1 && request.httpVersionMinor === 0) return
  const { socket } = response
  // It is a hint: one that a slow reader's connection has no room for is left out.
  if (socket === null || socket.writableNeedDrain || response.headersSent) return
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as Buffer).toString('latin1')
    const value = (rawHeaders[i + 1] as Buffer).toString('latin1')
    if (/^link$/i.test(name) && isFieldValue(value)) head += `${name}: ${value}\r\n`
  }
  // node:http writes Early Hints in one strict form only, and has no way to write an arbitrary 1xx.
  socket.write(`${head}\r\n`, 'latin1')
}

function isFieldValue(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
}

/** undici decodes the phrase as UTF-8. node:http may refuse non-ASCII, so the standard phrase replaces it. */
export function reasonPhrase(status: number, phrase: string): string {
  return /^[\t -~]*$/.test(phrase) ? phrase : (STATUS_CODES[status] ?? '')
}
