// One line a request: which route, which user, what was decided, how long it took. Nothing that a client could call a secret.
import type { Logger } from 'pino'
import type { Config } from '../config/schema/schema.ts'
import { lineWriter } from '../observability/logger.ts'
import { loggablePath } from '../observability/redact-path.ts'
import type { RequestTrace } from '../observability/tracing/tracing.ts'
import type { Ended } from './completion.ts'
import { outcomeOf, type Passage } from './request-context.ts'

export type LogRequest = (ended: Ended) => void

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
  return ({ passage, method, route, status, duration }) => {
    const { arrival, identity } = passage
    const userId = identity.kind === 'user' ? identity.user.id : passage.userId
    const user = userId === undefined ? '' : `,"user_id":${userId}`
    const statusText = status === undefined ? '' : `,"status":${status}`
    // Ids, names, methods and addresses hold nothing that JSON would escape: the gate and the parser saw to that.
    write(
      `"request_id":"${arrival.requestId}"${traceText(passage.trace)}${text('route', route)}${user}` +
        `,"decision":"${passage.decision ?? 'client_gone'}"${text('outcome', outcomeOf(passage))}` +
        `,"method":"${method}","path":${quoted(loggablePath(passage.url))}${statusText}` +
        `,"bytes_sent":${passage.bytesSent},"client":"${arrival.client}"` +
        `${hostText(arrival.host)}${upstreamText(passage)}` +
        `,"duration_ms":${thousandths(duration)},"msg":"request"`,
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
function upstreamText({ upstreamTarget, upstreamDuration }: Passage): string {
  return upstreamTarget === undefined
    ? ''
    : `,"upstream_target":"${upstreamTarget}","upstream_duration_ms":${thousandths(upstreamDuration)}`
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
export function thousandths(duration: number): string {
  const all = Math.round(duration * 1000)
  const whole = Math.floor(all / 1000)
  const rest = all - whole * 1000
  return `${whole}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`
}

function traceText(trace: RequestTrace | undefined): string {
  return trace === undefined ? '' : `,"trace_id":"${trace.traceId}","span_id":"${trace.spanId}"`
}
