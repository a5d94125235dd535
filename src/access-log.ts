// One line a request: which route, who, what was decided, how long it took. Nothing that a client could call a secret.
import type { Logger } from 'pino'
import type { Config } from './config/schema.ts'
import { lineWriter } from './log.ts'
import { outcomeOf } from './passage.ts'
import type { Ended } from './request-end.ts'
import type { RequestTrace } from './tracing/tracing.ts'
import { loggablePath } from './wire/loggable-path.ts'

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
    const user = identity.kind === 'user' ? `,"user_id":${identity.user.id}` : ''
    const statusText = status === undefined ? '' : `,"status":${status}`
    // Ids, names, methods and addresses hold nothing that JSON would escape: the gate and the parser saw to that.
    write(
      `"request_id":"${arrival.requestId}"${traceText(passage.trace)}${text('route', route)}${user}` +
        `,"decision":"${passage.decision ?? 'client_gone'}"${text('outcome', outcomeOf(passage))}` +
        `,"method":"${method}","path":${quoted(loggablePath(passage.url))}${statusText}` +
        `,"client":"${arrival.client}","duration_ms":${thousandths(duration)},"msg":"request"`,
    )
  }
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`
}

/** As `JSON.stringify` writes it, which takes longer to find that there is nothing to escape. */
function quoted(path: string): string {
  return plain.test(path) ? `"${path}"` : JSON.stringify(path)
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
