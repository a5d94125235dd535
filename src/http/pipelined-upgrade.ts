// Answers that are under way on a connection when Node hands it over: they go first, and are attended to meanwhile.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Node has no public name for it. */
export function pendingResponse(socket: Duplex): ServerResponse | undefined {
  return (socket as Duplex & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined
}

/** Whether the parser is in the body of a request, or failed in it. */
export function isInBody(socket: Duplex): boolean {
  const { parser } = socket as Duplex & { parser?: { incoming?: IncomingMessage | null } | null }
  return parser?.incoming?.complete === false
}

/**
 * For the listeners of `upgrade` and `connect`: calls back when the requests before have been answered, with what has
 * come meanwhile; not at all where the connection ends with them.
 * @param head what stood behind the request
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
    // A body may be as long as it likes, and waits at the client's.
    const stopBuffering = bufferWhilePending(socket, head, () => socket.pause())
    pending.once('close', () => afterPendingResponses(socket, stopBuffering(), onReady))
  }
}

/**
 * Before `upgrade` and `connect` Node takes its own listeners off the connection. Without them an answer is never told
 * that there is room for more, and nobody that the client has left or reads nothing.
 * @param head what has come already @param onFull called when more than 64 KiB have come
 * @returns lets go, and gives back what has come
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
  // Bytes that nobody reads would hide the end behind them.
  socket.resume()
  return () => {
    socket.off('data', onData).off('end', onEnd).off('drain', onDrain).off('timeout', onTimeout)
    socket.pause()
    return Buffer.concat(chunks)
  }
}

/** Bytes. */
const maxEarlyBytes = 65_536

function serverOf(socket: Socket): Server {
  return (socket as Socket & { server: Server }).server
}
