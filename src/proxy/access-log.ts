// One line a request: which route, who, what was decided, how long it took. Nothing that a client could call a secret.
import type { Logger } from 'pino'
import type { Config } from '../config/schema/schema.ts'
import { lineWriter } from '../observability/logger.ts'
import { redactPath } from '../observability/redact-path.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'

/** What a line tells of a request. */
export interface LoggedRequest {
  readonly requestId: string
  readonly trace: Pick<RequestTrace, 'traceId' | 'spanId'> | undefined
  /** The route's name, the own endpoint's path, or nothing. */
  readonly route: string | undefined
  readonly userId: number | undefined
  /** `forwarded`, `answered`, the code of the refusal, or `client_gone`. */
  readonly decision: string
  /** How what was forwarded ended. */
  readonly outcome: string | undefined
  readonly method: string
  readonly url: string
  /** Nothing where the client left before anything was answered. */
  readonly status: number | undefined
  /** What the connection was handed for the answer. */
  readonly bytesSent: number
  readonly client: string
  /** The Host header, as received. */
  readonly host: string
  /** The last target that it was sent to, and milliseconds to the head of its answer or the end of the try. */
  readonly upstreamTarget: string | undefined
  readonly upstreamDurationMs: number
  /** Milliseconds from its arrival. */
  readonly durationMs: number
}

export type LogRequest = (logged: LoggedRequest) => void

/**
 * The line is put together here and not by the logger, which takes a tenth of a request's time for it.
 * @param settings `server.log`
 * @returns nothing where no lines are to be written
 */
export function createAccessLog(
  logger: Logger,
  { requests, level }: Config['server']['log'],
): LogRequest | undefined {
  if (!requests || !['trace', 'debug', 'info'].includes(level)) return undefined
  const write = lineWriter(logger)
  return logged => {
    const { requestId, trace, route, userId, decision, outcome, method, url, status, bytesSent } = logged
    const { client, host, durationMs } = logged
    const user = userId === undefined ? '' : `,"user_id":${userId}`
    const statusText = status === undefined ? '' : `,"status":${status}`
    // Ids, names, methods and addresses hold nothing that JSON would escape: the gate and the parser saw to that.
    write(
      `"request_id":"${requestId}"${traceText(trace)}${text('route', route)}${user}` +
        `,"decision":"${decision}"${text('outcome', outcome)}` +
        `,"method":"${method}","path":${quoted(redactPath(url))}${statusText}` +
        `,"bytes_sent":${bytesSent},"client":"${client}"${hostText(host)}${upstreamText(logged)}` +
        `,"duration_ms":${toFixed3(durationMs)},"msg":"request"`,
    )
  }
}

/** A client may send any, up to what its header fields may have. */
function hostText(host: string): string {
  return host === '' ? '' : `,"host":${quoted(host.length > longestHost ? host.slice(0, longestHost) : host)}`
}

/** Characters: of a DNS name with its port. */
const longestHost = 260

/** A target's origin is a URL's, which has neither user info nor anything that JSON would escape. */
function upstreamText({ upstreamTarget, upstreamDurationMs }: LoggedRequest): string {
  return upstreamTarget === undefined
    ? ''
    : `,"upstream_target":"${upstreamTarget}","upstream_duration_ms":${toFixed3(upstreamDurationMs)}`
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`
}

/** As `JSON.stringify` writes it, which takes longer to find that there is nothing to escape. */
function quoted(given: string): string {
  return plain.test(given) ? `"${given}"` : JSON.stringify(given)
}

const plain = /^[!#-[\]-~]*$/

/** With three decimals, where whole numbers are written much faster than others. @param duration 0 or more */
export function toFixed3(duration: number): string {
  const all = Math.round(duration * 1000)
  const whole = Math.floor(all / 1000)
  const rest = all - whole * 1000
  return `${whole}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`
}

function traceText(trace: LoggedRequest['trace']): string {
  return trace === undefined ? '' : `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}"`
}
