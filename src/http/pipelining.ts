// Pipelining: each request of a connection waits until the earlier ones have been answered (RFC 9112 §9.3.2).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { flushDeferred } from './deferred-writes.ts'
import { isEnding } from './lingering-close.ts'

const unanswered = Symbol('unanswered')
type Connection = Socket & { [unanswered]?: number }

/** No client needs as many, and a connection must not be read faster than it is answered. */
const maxWaitingRequests = 100

/**
 * A queued pipelined response emits no `close`, so no work starts until it owns the socket. Node stops reading a
 * connection when responses pile up; when requests pile up instead, it would read on without end.
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
      // If its body failed to parse, the request is refused as the last of its connection, and must use up no limit.
      if (request.complete || !isEnding(connection)) start()
    })
  }
}

/** Call this when the response closes. */
export function responseClosed(response: ServerResponse): void {
  const connection = response.req.socket as Connection
  connection[unanswered] = (connection[unanswered] ?? 1) - 1
}

/** Whether the connection has had a request, and all of its requests have been answered. */
export function isIdle(connection: Socket): boolean {
  return (connection as Connection)[unanswered] === 0
}
