// What happens to a body that nobody read: drained for a while, so that the client hears its answer (RFC 9112 §9.6).
import type { IncomingMessage, ServerResponse } from 'node:http'

/** Milliseconds after its answer, and bytes, for which a client may go on sending a body that nobody reads. */
const longest = 5_000
const most = 16 * 1024 * 1024

/**
 * Closing a socket with unread bytes resets it, and the reset may overtake the answer. So the rest is read and
 * thrown away, up to a limit; past that the client has heard enough. Call it before the answer is sent: Node would
 * read the rest without a limit of ours, and after `Connection: close` not at all.
 */
export function linger(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || request.destroyed) return
  const { socket } = request
  let received = 0
  let deadline: NodeJS.Timeout | undefined
  // From the answer's end on: a slow reader must not be cut off before it.
  response.once('finish', () => {
    if (!request.complete) deadline = setTimeout(() => socket.destroy(), longest)
  })
  // What Node calls behind the last answer of a connection, to end both directions at once.
  socket.destroySoon = () => {
    socket.end(() => {
      if (request.complete) socket.destroy()
    })
  }
  request.on('data', (chunk: Buffer) => {
    received += chunk.length
    if (received > most) socket.destroy()
  })
  request.on('end', () => {
    clearTimeout(deadline)
    if (socket.writableFinished) socket.destroy()
  })
  request.on('error', () => {})
  request.on('close', () => clearTimeout(deadline))
  request.resume()
}
