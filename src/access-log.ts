// One line a request: which route, who, what was decided, how long it took. Nothing that a client could call a secret.
import type { ServerResponse } from 'node:http'
import type { Logger } from 'pino'
import type { Door } from './gate/arrival.ts'
import { lineWriter } from './log.ts'
import { type Passage, passageOf } from './passage.ts'

/** Writes the line when the answer is over, or the client has gone. */
export type LogRequest = (response: ServerResponse) => void

/**
 * The line is put together here and not by the logger, which takes a tenth of a request's time for it.
 * @param isOn `server.log.requests`
 */
export function createAccessLog(logger: Logger, isOn: boolean): LogRequest {
  if (!isOn || !logger.isLevelEnabled('info')) return () => {}
  const write = lineWriter(logger)
  return response => {
    const { req: request } = response
    const passage = passageOf(request)
    const { arrival, identity } = passage
    const user = identity.kind === 'user' ? `,"user_id":${identity.user.id}` : ''
    const status = response.headersSent ? `,"status":${response.statusCode}` : ''
    const duration = Math.round((performance.now() - passage.startedAt) * 1000) / 1000
    // Ids, names, methods and addresses hold nothing that JSON would escape: the gate and the parser saw to that.
    write(
      `"request_id":"${arrival.requestId}"${text('route', nameOf(arrival.door))}${user}` +
        `,"decision":"${passage.decision ?? 'client_gone'}"${text('outcome', outcomeOf(passage))}` +
        `,"method":"${request.method}","path":${JSON.stringify(pathOf(passage.url).slice(0, 512))}${status}` +
        `,"client":"${arrival.client}","duration_ms":${duration},"msg":"request"`,
    )
  }
}

function text(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`
}

/** An exchange that has not ended when the client's connection has was left by the client. */
function outcomeOf({ decision, outcome }: Passage): string | undefined {
  return outcome ?? (decision === 'forwarded' ? 'client_gone' : undefined)
}

/** The route's name, the own endpoint's path, or nothing. */
function nameOf(door: Door): string | undefined {
  if (door.kind === 'route') return door.route.name
  if (door.kind === 'preflight') return door.name
  return door.kind === 'own' ? door.path : undefined
}

/** Without the query and an authority: both may carry secrets. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  return path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')
}
