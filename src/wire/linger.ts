// What happens to a body that nobody read: drained for a while, so that the client hears its answer (RFC 9112 §9.6).
import type { IncomingMessage } from 'node:http'

/** Milliseconds and bytes for which a client may go on sending to a request that is answered already. */
const longest = 5_000
const most = 16 * 1024 * 1024

/**
 * Closing a socket with unread bytes resets it, and the reset may overtake the answer. So the rest is read and
 * thrown away, up to a limit; past that the client has heard enough.
 */
export function drain(request: IncomingMessage): void {
  if (request.complete || request.destroyed) return
  const { socket } = request
  let received = 0
  const deadline = setTimeout(() => socket.destroy(), longest)
  request.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received > most) socket.destroy()
  })
  request.on('error', () => {})
  request.on('close', () => clearTimeout(deadline))
  request.resume()
}
