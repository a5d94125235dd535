// Implements pipelining (RFC 9112 §9.3.2). A request waits until earlier requests of its connection have their
// responses.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { flushDeferred } from './deferred-writes.ts'
import { isEnding } from './lingering-close.ts'
import { onceOwnsConnection } from './node-internals.ts'

/** The responses that have not closed, in the order of their requests. */
const pending = Symbol('pending')
/** The last request, if its response closed before the whole request body had arrived. */
const unread = Symbol('unread')
type Connection = Duplex & { [pending]?: ServerResponse[]; [unread]?: IncomingMessage | undefined }

/**
 * The maximum number of waiting requests per connection. No client needs more. Without a limit, a connection could be
 * read faster than its responses are sent.
 */
const maxWaitingRequests = 100

/**
 * Calls `start` when all earlier responses of the connection have been sent. A response that is still waiting emits no
 * `close` event. Also limits the number of waiting requests, because Node does not limit it. Node stops reading a
 * connection only if too many responses wait.
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
      // If the body failed to parse, `onClientError` refuses the request and ends the connection. The request is not
      // started, so that no limit counts it.
      if (request.complete || !isEnding(connection)) start()
    })
  }
}

/** @returns how many earlier requests of the connection have no response yet */
function responseOpened(response: ServerResponse): number {
  const connection: Connection = response.req.socket
  connection[pending] ??= []
  return connection[pending].push(response) - 1
}

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

/** Tracks the responses of a server that does not pass its requests to `whenWritable`. */
export function trackResponses(server: Server): void {
  server.prependListener('request', (_request, response) => {
    responseOpened(response)
    response.once('close', () => responseClosed(response))
  })
}

/** Returns the response that the connection sends now. */
export function pendingResponse(connection: Connection): ServerResponse | undefined {
  return connection[pending]?.[0]
}

/** Returns whether the connection has had a request, and all of its requests have responses. */
export function isIdle(connection: Connection): boolean {
  return connection[pending]?.length === 0
}

/** Returns whether a request already has its response, but its body is still arriving or failed to parse. */
export function isInBody(connection: Connection): boolean {
  return connection[unread]?.complete === false
}

/**
 * Returns whether an earlier request of the connection still waits for its response. A response that has ended does not
 * count, even if it is still being sent.
 */
export function isUnanswered(connection: Connection): boolean {
  return connection[pending]?.at(-1)?.writableEnded === false
}

/**
 * Calls `onAnswered` when the pending responses have been sent, with all bytes that have arrived by then. Does not call
 * it if the connection ends after these responses. Call this from listeners of `upgrade` and `connect`.
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
    // If the buffer is full, the socket is paused. The client must then wait before it can send more.
    const stopBuffering = bufferWhilePending(server, socket, head, () => socket.pause())
    response.once('close', () => whenAnswered(server, socket, stopBuffering(), onAnswered))
  }
}

/** The maximum number of bytes that are buffered before the client has its response. */
const maxEarlyBytes = 65_536

/**
 * Adds listeners to the connection, because Node removes its own before `upgrade` and `connect`. Without the new
 * listeners, a pending response would get no `drain` event. The gateway would also not notice that the client has
 * disconnected or has stopped reading.
 * @param head the bytes already received
 * @param onFull called when more than 64 KiB have been received
 * @returns a function that stops buffering and returns the received bytes
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
  // The socket must be read, because unread bytes would hide the end of the stream.
  socket.resume()
  return () => {
    socket.off('data', onData).off('end', onEnd).off('drain', onDrain).off('timeout', onTimeout)
    socket.pause()
    return Buffer.concat(chunks)
  }
}
