// Reads what an upstream sent before it closed the connection. A failed write would discard it.
import type { Socket } from 'node:net'

type Done = (error?: Error | null) => void

/** The peer has closed or reset the connection: what it sent before is still to be read. */
const peerGone: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET'])

/**
 * A service may refuse an upload by a response, and close while the upload is still being sent. The next write then
 * fails, and Node destroys the socket before it reads the response. So a failed write is reported when reading ends.
 * Call this before anything is written.
 */
export function readBeforeFailing(socket: Socket): void {
  const { _write, _writev } = socket
  const afterReading =
    (done: Done): Done =>
    error => {
      const { code } = (error ?? {}) as NodeJS.ErrnoException
      if (!error || !peerGone.has(code) || socket.readableEnded) done(error)
      else {
        // An end that follows a failed write is no proper end: a response that it cuts off would look complete.
        socket.removeAllListeners('end').on('end', () => done(error))
      }
    }
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, afterReading(done))
  if (_writev !== undefined)
    socket._writev = (chunks, done) => _writev.call(socket, chunks, afterReading(done))
}
