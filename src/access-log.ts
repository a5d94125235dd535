// One line a request: which route, who, what was decided, how long it took. Nothing that a client could call a secret.
import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Passage } from './passage.ts'

/** Writes the line when the answer is over, or the client has gone. */
export type LogRequest = (passage: Passage, response: ServerResponse) => void

/** @param isOn `server.log.requests` */
export function createAccessLog(logger: Logger, isOn: boolean): LogRequest {
  if (!isOn) return () => {}
  return (passage, response) => {
    const { arrival, identity } = passage
    logger.info(
      {
        request_id: arrival.requestId,
        route: passage.route,
        user_id: identity.kind === 'user' ? identity.user.id : undefined,
        decision: passage.decision ?? 'client_gone',
        outcome: passage.outcome,
        method: passage.method,
        path: passage.path,
        status: response.headersSent ? response.statusCode : undefined,
        client: arrival.client,
        duration_ms: Math.round((performance.now() - passage.startedAt) * 1000) / 1000,
      },
      'request',
    )
  }
}
