// One line a request: which route, who, what was decided, how long it took. Nothing that a client could call a secret.
import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import { lineWriter } from './log.ts'
import type { Passage } from './passage.ts'

/** Writes the line when the answer is over, or the client has gone. */
export type LogRequest = (passage: Passage, response: ServerResponse) => void

/**
 * The line is put together here and not by the logger, which takes a tenth of a request's time for it.
 * @param isOn `server.log.requests`
 */
export function createAccessLog(logger: Logger, isOn: boolean): LogRequest {
  if (!isOn || !logger.isLevelEnabled('info')) return () => {}
  const write = lineWriter(logger)
  return (passage, response) => {
    const { arrival, identity } = passage
    const user = identity.kind === 'user' ? `,"user_id":${identity.user.id}` : ''
    const status = response.headersSent ? `,"status":${response.statusCode}` : ''
    const duration = Math.round((performance.now() - passage.startedAt) * 1000) / 1000
    write(
      `"request_id":${JSON.stringify(arrival.requestId)}${text('route', passage.route)}${user}` +
        `,"decision":"${passage.decision ?? 'client_gone'}"${text('outcome', passage.outcome)}` +
        `${text('method', passage.method)}${text('path', passage.path)}${status}` +
        `${text('client', arrival.client)},"duration_ms":${duration},"msg":"request"`,
    )
  }
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":${JSON.stringify(value)}`
}
