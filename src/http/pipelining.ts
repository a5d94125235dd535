// Pipelining: each request of a connection waits until the earlier ones have been answered (RFC 9112 §9.3.2).
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { flushDeferred } from './deferred-writes.ts'
import { isEnding } from './lingering-close.ts'
import { onceOwnsConnection } from './node-internals.ts'

/** The responses that have not closed, in the order of their requests. */
const pending = Symbol('pending')
/** The last request, if its response closed before all of its body arrived. */
const unread = Symbol('unread')
type Connection = Duplex & { [pending]?: ServerResponse[]; [unread]?: IncomingMessage | undefined }

/** No client needs as many, and a connection must not be read faster than it is answered. */
const maxWaitingRequests = 100

/**
 * A queued pipelined response emits no `close`, so no work starts until it owns the socket. Node stops reading a
 * connection when responses pile up; when requests pile up instead, it would read on without end.
 */
export function whenWritable(request: IncomingMessage, response: ServerResponse, start: () => void): void {
  const connection: Connection = request.socket
  const ahead = responseOpened(response)
  if (response.socket !== null) start()
  else if (ahead > maxWaitingRequests) {
    flushDeferred()
    connection.destroy()
  } else {
    onceOwnsConnection(response, () => {
      // If its body failed to parse, the request is refused as the last of its connection, and must use up no limit.
      if (request.complete || !isEnding(connection)) start()
    })
  }
}

/** @returns how many earlier requests of its connection are unanswered */
function responseOpened(response: ServerResponse): number {
  const connection: Connection = response.req.socket
  connection[pending] ??= []
  return connection[pending].push(response) - 1
}

/** Call this when the response closes. */
export function responseClosed({ req: request }: ServerResponse): void {
  const connection: Connection = request.socket
  connection[pending]?.shift()
  connection[unread] = undefined
  if (request.complete) return
  connection[unread] = request
  // An idle connection must not keep its last request in memory.
  request.once('end', () => {
    if (connection[unread] === request) connection[unread] = undefined
  })
}

/** For a server whose requests do not pass `whenWritable`. */
export function trackResponses(server: Server): void {
  server.prependListener('request', (_request, response) => {
    responseOpened(response)
    response.once('close', () => responseClosed(response))
  })
}

/** The response that the connection sends now. */
export function pendingResponse(connection: Connection): ServerResponse | undefined {
  return connection[pending]?.[0]
}

/** Whether the connection has had a request, and all of its requests have been answered. */
export function isIdle(connection: Connection): boolean {
  return connection[pending]?.length === 0
}

/** Whether the body of a request that has been answered is still arriving, or failed to parse. */
export function isInBody(connection: Connection): boolean {
  return connection[unread]?.complete === false
}

/** Whether an earlier request of the connection waits for its response. A response that was ended may still be sent. */
export function isUnanswered(connection: Connection): boolean {
  return connection[pending]?.at(-1)?.writableEnded === false
}

/**
 * For the listeners of `upgrade` and `connect`. Calls back when the pending responses have been sent, with the bytes that
 * were received meanwhile. It never calls back if the connection ends with these responses.
 * @param head the bytes that followed the request
 */
export function whenAnswered(
  server: Server,
  socket: Socket,
  head: Buffer,
  onAnswered: (received: Buffer) => void,
): void {
  const response = pendingResponse(socket)
  if (!socket.writable) socket.resume()
  else if (response === undefined) onAnswered(head)
  else {
    // While paused, the rest of what the client sends stays with the client.
    const stopBuffering = bufferWhilePending(server, socket, head, () => socket.pause())
    response.once('close', () => whenAnswered(server, socket, stopBuffering(), onAnswered))
  }
}

/** A client that sends more than this before its response is stopped. */
const maxEarlyBytes = 65_536

/**
 * Before `upgrade` and `connect`, Node removes its own listeners from the connection. Without them, a pending response
 * gets no `drain`, and a client that disconnects or does not read goes unnoticed.
 * @param head bytes already received @param onFull called when more than 64 KiB have been received
 * @returns stops buffering and returns the received bytes
 */
export function bufferWhilePending(
  server: Server,
  socket: Socket,
  head: Buffer,
  onFull: () => void,
): () => Buffer {
  const chunks = [head]
  let bufferedBytes = head.length
  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    bufferedBytes += chunk.length
    if (bufferedBytes > maxEarlyBytes) onFull()
  }
  const onEnd = () => socket.end()
  const onDrain = () => pendingResponse(socket)?.emit('drain')
  const onTimeout = () => {
    if (!server.emit('timeout', socket)) socket.destroy()
  }
  socket.on('data', onData).on('end', onEnd).on('drain', onDrain).on('timeout', onTimeout)
  // Unread bytes would hide the end of the stream behind them.
  socket.resume()
  return () => {
    socket.off('data', onData).off('end', onEnd).off('drain', onDrain).off('timeout', onTimeout)
    socket.pause()
    return Buffer.concat(chunks)
  }
}
