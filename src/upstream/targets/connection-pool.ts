// A target's connections, one request on each at a time. A request that finds none free waits, and can be refused.
import type { ServerResponse } from 'node:http'
import { buildConnector } from 'undici'
import { createWaitingLine } from '../../async/semaphore.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import { type Connection, PooledConnection } from './connection.ts'

export interface ConnectionPool {
  hasFree(): boolean
  tryAcquire(): Connection | undefined
  /**
   * Waits for a connection, first come first served.
   * @throws Refusal 503 `upstream_unavailable` when the wait is over (CONTRACT §2, `connections`)
   * @throws ClientDisconnected when the client leaves
   */
  acquire(response: ServerResponse): Promise<Connection>
  /** Closes all connections, even with requests in flight; requests sent later fail. */
  close(): Promise<void>
}

interface Options {
  origin: string
  /** `connections`. */
  maxConnections: number
  /** `timeouts.connect`: within it a connection must be open, or free. */
  connectTimeoutMs: number
  tls: { ca?: string }
  /** Milliseconds: until the response head, and between two chunks of its body. */
  timeouts: { readonly response: number; readonly idle: number }
}

/**
 * Requests wait here and not in undici's queue, from which they cannot be removed: requests refused long ago would
 * stay in memory, with all their headers, for as long as the connections are busy. undici's Pool also checks every
 * busy connection twice for each request: some 4 % of a request's cost with 48 in flight.
 */
export function openConnectionPool({
  origin,
  maxConnections,
  connectTimeoutMs,
  tls,
  timeouts,
}: Options): ConnectionPool {
  // Shared by all connections, since it caches TLS sessions.
  const connect = buildConnector({ timeout: connectTimeoutMs, ...tls })
  const connections: PooledConnection[] = []
  /** A stack: the connection used most recently is reused first. */
  const free: PooledConnection[] = []
  const waiting = createWaitingLine<Connection>(connectTimeoutMs, () => new Refusal('upstream_unavailable'))
  let isClosed = false

  function release(connection: PooledConnection): void {
    if (waiting.serve(connection)) return
    // A connection that failed to open is not retried while there are others.
    if (connection.hasFailed) free.unshift(connection)
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
    async acquire(response) {
      const { share, leave } = waiting.join()
      const onClose = () => leave(new ClientDisconnected())
      response.on('close', onClose)
      try {
        return await share
      } finally {
        response.off('close', onClose)
      }
    },
    async close() {
      isClosed = true
      while (waiting.length() > 0) waiting.serve(openConnection())
      await Promise.all(connections.map(connection => connection.close()))
    },
  }
}
