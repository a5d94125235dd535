// Connections in transit to a worker: if it dies before accepting them, another worker receives them.
import type { Worker } from 'node:cluster'

/** The format of cluster's internal messages. */
interface ClusterMessage {
  act?: unknown
  seq?: unknown
  ack?: unknown
}

/** The native handle of a connection. */
interface Handle {
  close(): void
}

/** Workers that can take connections now. */
const listening = new Set<Worker>()

/** Enough time to read all messages that a dead process has sent. */
const drainDelayMs = 100

/**
 * Node forgets connections that a worker was sent and had not accepted when it died: their clients would wait
 * forever. Nothing was read from them, so they are distributed again, as Node does with those that a worker refuses.
 * Cluster's internal messages are undocumented: if Node changes them, nothing is rescued and the rest still works.
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
    // Node waits for the dead worker to take the handle before it emits `disconnect`, and only then do the other
    // workers receive its share of connections.
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
