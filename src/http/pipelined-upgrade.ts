// Responses still pending when Node hands a connection over for `upgrade` or `connect`: they are completed first.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Node has no public API for it. */
export function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** Whether the parser is inside a request body, or failed inside one. */
export function isInBody(socket: Duplex): boolean {
  const { parser } = socket as Duplex & { parser?: { incoming?: IncomingMessage | null } | null }
  return parser?.incoming?.complete === false
}

/**
 * For the listeners of `upgrade` and `connect`: calls back when the earlier requests have been answered, with the
 * bytes received meanwhile; never, if the connection ends with their responses.
 * @param head the bytes that followed the request
 */
export function afterPendingResponses(
  socket: Socket,
  head: Buffer,
  onReady: (earlyBytes: Buffer) => void,
): void {
  const pending = pendingResponse(socket)
  if (!socket.writable) socket.resume()
  else if (pending === undefined) onReady(head)
  else {
    // A body may have any length: while paused, the rest stays with the client.
    const stopBuffering = bufferWhilePending(socket, head, () => socket.pause())
    pending.once('close', () => afterPendingResponses(socket, stopBuffering(), onReady))
  }
}

/**
 * Before `upgrade` and `connect` Node removes its own listeners from the connection. Without them a pending response
 * gets no `drain`, and a client that disconnects or does not read goes unnoticed.
 * @param head bytes already received @param onFull called when more than 64 KiB have been received
 * @returns stops buffering and returns the received bytes
 */
export function bufferWhilePending(socket: Socket, head: Buffer, onFull: () => void): () => Buffer {
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
    if (!serverOf(socket).emit('timeout', socket)) socket.destroy()
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

const maxEarlyBytes = 65_536

function serverOf(socket: Socket): Server {
  return (socket as Socket & { server: Server }).server
}
