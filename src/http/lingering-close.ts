// What happens to a body that nobody read: drained for a while, so that the client hears its answer (RFC 9112 §9.6).
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'

/** Milliseconds after its answer, and bytes, for which a client may go on sending what nobody reads. */
const maxLingerMs = 5_000
const maxLingerBytes = 16 * 1024 * 1024

/**
 * Closing a socket with unread bytes resets it, and the reset may overtake the answer. So the rest is read and
 * thrown away, up to a limit; past that the client has heard enough. Call it before the answer is sent: Node would
 * read the rest without a limit of ours, and after `Connection: close` not at all.
 * @param isLast the connection ends behind the answer, and with it whatever stands behind the request
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
  // From the answer's end on: a slow reader must not be cut off before it.
  response.once('finish', () => {
    if (!request.complete) deadline = setTimeout(() => socket.destroy(), maxLingerMs)
  })
  // What Node calls behind the last answer of a connection, to end both directions at once.
  socket.destroySoon = () => {
    isSaid = true
    halfClose(socket, () => {
      if (request.complete) socket.destroy()
    })
  }
  request.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length
    if (receivedBytes > maxLingerBytes) socket.destroy()
  })
  request.on('end', () => {
    clearTimeout(deadline)
    // Where it ends for what came behind the request, that is still to be answered.
    if (!isSaid) return
    if (socket.writableFinished) socket.destroy()
    else socket.end(() => socket.destroy())
  })
  request.on('error', () => {})
  request.on('close', () => clearTimeout(deadline))
  request.resume()
}

/** One without is not complete either before its answer, where that is given at once. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Milliseconds without a byte after which a TLS client has paused. */
const tlsQuietMs = 50

/**
 * Ends what we say while the client may still be sending. Over TLS it waits for a pause: OpenSSL fails a connection
 * that is ended with bytes of the client still unread, and what we had said is lost with it.
 */
function halfClose(socket: Socket, onEnded: () => void = () => {}): void {
  markEnding(socket)
  if (!(socket instanceof TLSSocket)) {
    socket.end(onEnded)
    return
  }
  // As after an end: an answer that was still under way is not said behind the last word.
  Object.assign(socket, { writable: false })
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
 * Ends a connection whose last answer was said: it reads on for a moment, and while its client still sends, up to a limit,
 * so that a reset does not overtake that.
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

/** Milliseconds. */
const gracefulEndMs = 500

/** Connections that are being ended: every byte that still comes in is refused anew, and nobody is to hear of it. */
const endingSockets = new WeakSet<Duplex>()

export function markEnding(socket: Duplex): void {
  endingSockets.add(socket)
}

export function isEnding(socket: Duplex): boolean {
  return endingSockets.has(socket)
}
