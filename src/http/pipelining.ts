// Pipelined requests of one connection: each waits until those before it have been answered (RFC 9112 §9.3.2).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { flushDeferred } from './deferred-writes.ts'
import { isEnding } from './lingering-close.ts'

const unanswered = Symbol('unanswered')
type Connection = Socket & { [unanswered]?: number }

/** Requests that may wait: no client needs as many, and a connection is read no faster than it is answered. */
const maxWaitingRequests = 100

/**
 * Until its turn nobody would hear that its client has left, so nothing is done for it before. Node holds the reading
 * of a connection back by the answers that pile up; where the requests pile up instead it reads on for ever.
 */
export function whenWritable(request: IncomingMessage, response: ServerResponse, start: () => void): void {
  const connection = request.socket as Connection
  const ahead = connection[unanswered] ?? 0
  connection[unanswered] = ahead + 1
  if (response.socket !== null) start()
  else if (ahead > maxWaitingRequests) {
    flushDeferred()
    connection.destroy()
  } else {
    response.once('socket', () => {
      // The parser has failed in its body: it is refused as the last of its connection, and spends nothing before.
      if (request.complete || !isEnding(connection)) start()
    })
  }
}

/** To be called as the response closes. */
export function responseClosed(response: ServerResponse): void {
  const connection = response.req.socket as Connection
  connection[unanswered] = (connection[unanswered] ?? 1) - 1
}

/** Whether all requests of the connection have been answered, and there was one. */
export function isIdle(connection: Socket): boolean {
  return (connection as Connection)[unanswered] === 0
}
