// Drains an unread request body for a limited time, so that the client receives its response (RFC 9112 §9.6).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { dropFurtherWrites, onLastResponse } from './node-internals.ts'

/** The limits for reading the rest of a request body after the response. The rest is discarded. */
const maxLingerMs = 5_000
const maxLingerBytes = 16 * 1024 * 1024

/**
 * Reads and discards the rest of the request body, up to a limit. Closing a socket with unread bytes resets it, and the
 * reset could overtake the response. While the rest is read, the client has time to read the response. Call this before
 * the response is sent. Otherwise Node reads the rest without a limit, or not at all after `Connection: close`.
 * @param isLastResponse whether the connection ends after the response; bytes after the request are then dropped
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
  let isLastSent = false
  // The time limit starts when the response has been sent, so that a slow client receives the whole response.
  response.once('finish', () => {
    if (!request.complete) deadline = setTimeout(() => socket.destroy(), maxLingerMs)
  })
  onLastResponse(socket, () => {
    isLastSent = true
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
    // Until its last response has been sent, the connection stays open for this response or for other requests.
    if (!isLastSent) return
    if (socket.writableFinished) socket.destroy()
    else socket.end(() => socket.destroy())
  })
  request.on('error', () => {})
  request.on('close', () => clearTimeout(deadline))
  request.resume()
}

/**
 * Reads the headers instead of `complete`. If the response is sent immediately, `complete` is false even for a request
 * without a body.
 */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** A TLS client counts as paused when it has sent nothing for this time. */
const tlsQuietMs = 50

/**
 * Ends the gateway's side of the connection while the client may still be sending. Over TLS, this first waits until the
 * client pauses. If bytes of the client are unread, OpenSSL fails the connection, and the response is lost.
 */
function halfClose(socket: Socket, onEnded: () => void = () => {}): void {
  markEnding(socket)
  if (!(socket instanceof TLSSocket)) {
    socket.end(onEnded)
    return
  }
  // A response that is still in progress must not write anything after the last response.
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
 * Ends a connection after its last response. Then reads and discards bytes until the client sends nothing for 500 ms,
 * or until a limit is reached. Without these reads, a reset could overtake the response.
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

/**
 * Connections that are being ended. The parser rejects all further bytes of these connections, and its errors get no
 * response.
 */
const endingSockets = new WeakSet<Duplex>()

export function markEnding(socket: Duplex): void {
  endingSockets.add(socket)
}

export function isEnding(socket: Duplex): boolean {
  return endingSockets.has(socket)
}
