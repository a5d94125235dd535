// The connections to a target, one request on each at a time: who finds none free waits here, and can still be turned away.
import { buildConnector } from 'undici'
import { ClientDisconnected } from '../../refusals/client-gone.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { type Connection, PooledConnection } from './connection.ts'

export interface ConnectionPool {
  hasFree(): boolean
  /** One that is free, or nothing. */
  tryAcquire(): Connection | undefined
  /**
   * Waits for one, first come first served.
   * @throws Refusal 503 `upstream_unavailable` when the wait is over (CONTRACT §2, `connections`)
   * @throws ClientGone when `onGone` calls back
   */
  acquire(onCancellable: (cancel: () => void) => void): Promise<Connection>
  /** Closes them, whatever is in flight; what is sent from now on fails. */
  close(): Promise<void>
}

interface Options {
  origin: string
  /** Connections at most: `connections`. */
  maxConnections: number
  /** Milliseconds in which one must be open, or free: `timeouts.connect`. */
  connectTimeoutMs: number
  tls: { ca?: string }
  /** Milliseconds: to the answer's head, between two chunks of its body. */
  timeouts: { readonly response: number; readonly idle: number }
}

/**
 * Requests wait here and not in undici's queue: what waits there cannot be taken out again, so that those that were
 * refused long ago would stay in memory, with all their fields, for as long as the connections are busy. Its Pool also
 * looks at every busy connection twice for each request: some 4 % of what one costs where 48 are in flight.
 */
export function openConnectionPool({
  origin,
  maxConnections,
  connectTimeoutMs,
  tls,
  timeouts,
}: Options): ConnectionPool {
  // One for all: it remembers TLS sessions.
  const connect = buildConnector({ timeout: connectTimeoutMs, ...tls })
  const connections: PooledConnection[] = []
  /** The last is taken first: the one that was busy a moment ago. */
  const free: PooledConnection[] = []
  const waiters = new Set<(connection: Connection) => void>()
  let isClosed = false

  function release(connection: PooledConnection): void {
    const [next] = waiters
    // Handed over, so that nobody who comes now gets in before those who wait.
    if (next !== undefined) next(connection)
    // Not tried again while there are others.
    else if (connection.hasFailed) free.unshift(connection)
    else free.push(connection)
  }

  function openConnection(): PooledConnection {
    const connection = new PooledConnection({ origin, connect, timeouts, onFree: release })
    connections.push(connection)
    if (isClosed) void connection.close()
    return connection
  }

  return {
    hasFree: () => free.length > 0 || connections.length < maxConnections,
    tryAcquire: () => free.pop() ?? (connections.length < maxConnections ? openConnection() : undefined),
    acquire(onCancellable) {
      return new Promise((resolve, reject) => {
        const cancel = (error: Error) => {
          clearTimeout(timer)
          if (waiters.delete(grant)) reject(error)
        }
        const grant = (connection: Connection) => {
          clearTimeout(timer)
          waiters.delete(grant)
          resolve(connection)
        }
        const timer = setTimeout(() => cancel(new Refusal('upstream_unavailable')), connectTimeoutMs)
        waiters.add(grant)
        onCancellable(() => cancel(new ClientDisconnected()))
      })
    },
    async close() {
      isClosed = true
      for (const grant of waiters) grant(openConnection())
      await Promise.all(connections.map(connection => connection.close()))
    },
  }
}
