// Drains an unread request body for a limited time, so that the client receives its response (RFC 9112 §9.6).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { dropFurtherWrites, onLastResponse } from './node-internals.ts'

/** How long after its response, and how much, a client may go on sending a body that is discarded. */
const maxLingerMs = 5_000
const maxLingerBytes = 16 * 1024 * 1024

/**
 * Closing a socket with unread bytes resets it, and the reset may overtake the response. So the rest of the body is
 * read and discarded, up to a limit; past it the client has had time enough to read the response. Call this before
 * the response is sent: Node would read the rest without a limit, and after `Connection: close` not at all.
 * @param isLastResponse the connection ends after the response; whatever follows the request is dropped
 */
export function lingeringClose(
  request: IncomingMessage,
  response: ServerResponse,
  isLastResponse: boolean,
): void {
  if (request.complete || request.destroyed || !(isLastResponse || hasBody(request))) return
  const { socket } = request
  let receivedBytes = 0
  let deadline: NodeJS.Timeout | undefined
  let isSaid = false
  // Starts when the response has been sent: a slow reader must not be cut off before that.
  response.once('finish', () => {
    if (!request.complete) deadline = setTimeout(() => socket.destroy(), maxLingerMs)
  })
  onLastResponse(socket, () => {
    isSaid = true
    halfClose(socket, () => {
      if (request.complete) socket.destroy()
    })
  })
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length
    if (receivedBytes > maxLingerBytes) socket.destroy()
  })
  request.on('end', () => {
    clearTimeout(deadline)
    // If the connection is ending because of what follows the request, the response to that is still to come.
    if (!isSaid) return
    if (socket.writableFinished) socket.destroy()
    else socket.end(() => socket.destroy())
  })
  request.on('error', () => {})
  request.on('close', () => clearTimeout(deadline))
  request.resume()
}

/** Needed beside `complete`, which is false for a request without a body too, if its response is immediate. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** A TLS client that sends nothing for this long has paused. */
const tlsQuietMs = 50

/**
 * Ends our direction while the client may still be sending. Over TLS it waits for a pause: OpenSSL fails a connection
 * that is ended while bytes of the client are unread, and the response is lost with it.
 */
function halfClose(socket: Socket, onEnded: () => void = () => {}): void {
  markEnding(socket)
  if (!(socket instanceof TLSSocket)) {
    socket.end(onEnded)
    return
  }
  // A response still in progress must not be written after the last one.
  dropFurtherWrites(socket)
  let bytesSeen = socket.bytesRead
  let waited = 0
  const timer = setInterval(() => {
    const isQuiet = socket.bytesRead === bytesSeen
    bytesSeen = socket.bytesRead
    waited += tlsQuietMs
    if (!isQuiet && !socket.destroyed && waited < maxLingerMs) return
    clearInterval(timer)
    socket.end(onEnded)
  }, tlsQuietMs)
}

/**
 * Ends a connection after its last response. It keeps reading for a moment, and longer while the client still sends,
 * up to a limit, so that a reset does not overtake the response.
 */
export function endGracefully(socket: Socket): void {
  halfClose(socket)
  socket.resume()
  const start = socket.bytesRead
  let seen = start
  let waited = 0
  const timer = setInterval(() => {
    const isQuiet = socket.bytesRead === seen && socket.writableLength === 0
    seen = socket.bytesRead
    waited += gracefulEndMs
    if (isQuiet || waited >= maxLingerMs || seen - start > maxLingerBytes) socket.destroy()
  }, gracefulEndMs)
  socket.once('close', () => clearInterval(timer))
}

const gracefulEndMs = 500

/** Connections being ended: the parser rejects every further byte, and none of these errors is to be answered. */
const endingSockets = new WeakSet<Duplex>()

export function markEnding(socket: Duplex): void {
  endingSockets.add(socket)
}

export function isEnding(socket: Duplex): boolean {
  return endingSockets.has(socket)
}
