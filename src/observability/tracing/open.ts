// Opens tracing if the standard environment variables of OpenTelemetry enable it. Only this file loads OpenTelemetry.
import type { Logger } from 'pino'
import type { ReadFile } from '../../config/read-file.ts'
import { checkOtlpVariables } from './otlp-variables.ts'
import type { Tracing } from './tracing.ts'

interface Options {
  logger: Pick<Logger, 'info' | 'warn'>
  version: string
}

/**
 * Opens tracing, unless `settings` is undefined. Call this once per process. The endpoint is not passed on, because the
 * SDK reads it from the environment.
 */
export async function openTracing(
  settings: TracingSettings | undefined,
  options: Options,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined
  const { createTracing } = await import('./otel.ts')
  return createTracing(options)
}

type Env = Readonly<Record<string, string | undefined>>

interface TracingSettings {
  /** The URL to which traces are sent. The parts of the URL that may be secret are omitted. */
  readonly endpoint: string
  /** One sentence for each setting that the gateway accepts, but whose value is ignored or replaced. */
  readonly warnings: readonly string[]
}

interface ReadSettings {
  /**
   * Undefined if the settings do not enable tracing or have problems. An endpoint or `OTEL_TRACES_EXPORTER=otlp`
   * enables tracing.
   */
  readonly traces?: TracingSettings
  /** One sentence for each setting that makes tracing impossible. */
  readonly problems: readonly string[]
}

/**
 * Reads the settings of traces, and reports mistakes that the SDK ignores silently.
 * @param readFile reads certificate files, relative to the working directory
 */
export function readTracing(env: Env, readFile: ReadFile): ReadSettings {
  // An empty value counts as absent (OpenTelemetry, "Environment Variable Specification").
  const get = (name: string) => env[name]?.trim() || undefined
  const otlpVariable = (name: string) => {
    const key = get(`OTEL_EXPORTER_OTLP_TRACES_${name}`)
      ? 'OTEL_EXPORTER_OTLP_TRACES_'
      : 'OTEL_EXPORTER_OTLP_'
    return { key: key + name, value: get(key + name) }
  }
  const exporter = get('OTEL_TRACES_EXPORTER')
  const endpoint = otlpVariable('ENDPOINT')
  if (get('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || exporter === 'none') return { problems: [] }
  if (exporter === undefined && endpoint.value === undefined) return { problems: [] }

  const problems: string[] = []
  const warnings: string[] = []
  if (exporter !== undefined && exporter !== 'otlp') {
    problems.push(`OTEL_TRACES_EXPORTER: ${exporter} is not supported. Use otlp or none.`)
  }
  const protocol = otlpVariable('PROTOCOL')
  if (protocol.value === 'http/protobuf') {
    warnings.push(
      `${protocol.key}: traces are sent as http/json, which collectors accept at the same address`,
    )
  } else if (protocol.value !== undefined && protocol.value !== 'http/json') {
    problems.push(
      `${protocol.key}: ${protocol.value} is not supported. Use http/json and the collector's OTLP/HTTP endpoint (port 4318).`,
    )
  }
  const url = urlOf(endpoint.value ?? 'http://localhost:4318')
  if (url === undefined) problems.push(`${endpoint.key}: must be an http:// or https:// URL`)
  else if (!isEncoded(url)) {
    problems.push(
      `${endpoint.key}: the user or password contains a % without a valid escape. Write it as %25.`,
    )
  }
  const ofExporter = checkOtlpVariables(get, readFile)
  problems.push(...ofExporter.problems)
  warnings.push(...ofExporter.warnings)
  if (!isValidAttributes(get('OTEL_RESOURCE_ATTRIBUTES'))) {
    warnings.push('OTEL_RESOURCE_ATTRIBUTES: ignored. Write key=value,key=value with percent-encoded values.')
  }
  problems.push(...samplerProblems(get('OTEL_TRACES_SAMPLER'), get('OTEL_TRACES_SAMPLER_ARG')))
  if (url === undefined || problems.length > 0) return { problems }

  const isTracesEndpoint = endpoint.key === 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  const path = isTracesEndpoint ? url.pathname : `${url.pathname.replace(/\/$/, '')}/v1/traces`
  return { traces: { endpoint: url.origin + path, warnings }, problems }
}

function urlOf(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined
}

/** Returns whether Node can decode the user and password of the URL. If not, Node would throw at each export. */
function isEncoded({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(username + password) !== undefined
  } catch {
    return false
  }
}

/** Returns whether all attributes are valid. If one is invalid, the SDK ignores all of them without a warning. */
function isValidAttributes(attributes = ''): boolean {
  try {
    return attributes
      .split(',')
      .filter(pair => pair.trim() !== '')
      .every(pair => /^[^=]*[^=\s][^=]*=[^=]*$/.test(decodeURIComponent(pair) && pair))
  } catch {
    return false
  }
}

const ratios = ['traceidratio', 'parentbased_traceidratio']
const samplers = ['always_on', 'always_off', 'parentbased_always_on', 'parentbased_always_off', ...ratios]

/**
 * Returns the problems in the settings of the sampler. With invalid settings, the SDK would sample every request, which
 * is not what the operator wants.
 */
function samplerProblems(sampler: string | undefined, argument: string | undefined): string[] {
  if (sampler === undefined) return []
  if (!samplers.includes(sampler)) {
    return [`OTEL_TRACES_SAMPLER: ${sampler} is not supported. Use one of ${samplers.join(', ')}.`]
  }
  if (!ratios.includes(sampler) || argument === undefined) return []
  const ratio = Number(argument)
  return ratio >= 0 && ratio <= 1 ? [] : ['OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1']
}
