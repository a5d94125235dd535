// Connections on their way to a worker: where it dies before it takes them, they go to another.
import type { Worker } from 'node:cluster'

/** As cluster words it among its own processes. */
interface ClusterMessage {
  act?: unknown
  seq?: unknown
  ack?: unknown
}

/** What the operating system knows of a connection. */
interface Handle {
  close(): void
}

/** Who may take connections now. */
const listening = new Set<Worker>()

/** Milliseconds in which all that a dead process has said is read. */
const drainDelayMs = 100

/**
 * Node forgets what a dead worker was sent and had not taken, and such a client would wait for ever. Nothing of it was
 * read, so it is distributed again, as Node does with what a worker refuses. For cluster's own messages there is no
 * documented way: where a version words them otherwise, nothing is rescued and all else goes on.
 */
export function rescueConnections(worker: Worker): void {
  const inTransit = new Map<unknown, Handle>()
  const { process } = worker
  const tell = (event: string, ...words: unknown[]) => process.emit(event as never, ...(words as never[]))
  const send = process.send.bind(process) as (...words: unknown[]) => boolean
  process.send = (message: ClusterMessage, handle?: unknown, ...more: unknown[]) => {
    if (message.act === 'newconn') inTransit.set(message.seq, handle as Handle)
    return send(message, handle, ...more)
  }
  process.on('internalMessage', (message: ClusterMessage) => inTransit.delete(message.ack))
  worker.once('listening', () => listening.add(worker))
  worker.once('exit', () => {
    // Node waits for the dead to take it before it says that they are gone; the share of the dead is then the others'.
    const late = setTimeout(tell, drainDelayMs, 'disconnect')
    worker.once('disconnect', () => clearTimeout(late))
  })
  worker.once('disconnect', () => {
    listening.delete(worker)
    for (const [seq, handle] of [...inTransit]) {
      if (listening.size === 0) handle.close()
      else tell('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false })
    }
  })
}
