// Manages the connections to an endpoint, with one request at a time on each connection. A request without a free
// connection waits, and is refused if the wait is too long.
import { createWaitingLine } from '../../async/semaphore.ts'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { ClientKey } from '../../identity/client-key.ts'
import type { ConnectionLimit } from '../../refusals/limits.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import { type Connection, PooledConnection } from './connection.ts'
import { createConnector, type Dial } from './dial.ts'

export interface ConnectionPool {
  hasFree(): boolean
  /** Returns whether the client may take one more connection (`connections_per_client`). */
  admits(client: ClientKey): boolean
  /**
   * Adds one to the client's count of connections, for a connection that the client takes later. Call `cancel` right
   * before the client takes this connection, or when the connection is not needed.
   */
  reserve(client: ClientKey): void
  cancel(client: ClientKey): void
  /** @returns undefined if no connection is free, or if the endpoint is retired */
  tryAcquire(client: ClientKey): Connection | undefined
  /**
   * Waits for a connection. The first request in the queue gets the first free connection. A waiting request counts as
   * a connection of its client.
   * @param wait by default, at most `timeouts.connect`, and then 503 `upstream_unavailable`
   * @throws Refusal when the wait ends without a connection
   * @throws ClientDisconnected when the client leaves
   * @throws EndpointRetired when the endpoint is retired; nothing was sent, so the caller can try another endpoint
   */
  acquire(client: ClientKey, waitingClient: WaitingClient, wait?: Wait): Promise<Connection>
}

/** Code that waits for an upstream on behalf of a client. */
export interface Waiter {
  /** Called once if the client's connection closes before the response has ended. */
  onClientGone(): void
}

/**
 * The client of a request that waits for a connection, and later for the response of its upstream. If the client
 * leaves, its `waiter` is notified. The relay and the tunnel implement `Waiter` themselves. So only a request that
 * waits in a queue needs an extra function. V8 would keep such a function, together with its request, in memory until
 * the next full collection.
 */
export interface WaitingClient {
  waiter: Waiter | undefined
}

/** The maximum wait in milliseconds, and the refusal that the request gets after this time. */
export interface Wait {
  readonly ms: number
  readonly refusal: 'upstream_unavailable' | 'upstream_timeout'
}

interface OpenPool extends ConnectionPool {
  /** Sets the limits for future connections and waits. */
  configure(settings: Settings): void
  /**
   * Closes free connections now, and busy connections after their response. Resolves when all connections are closed.
   */
  retire(): Promise<void>
  /** Closes all connections, even with requests in flight. Later requests fail. */
  close(): Promise<void>
}

/** The error for an endpoint whose address no longer belongs to the target. */
export class EndpointRetired extends Error {
  override readonly name = 'EndpointRetired'
}

type Settings = Pick<UpstreamConfig, 'connections' | 'connections_per_client' | 'connection_age' | 'timeouts'>

/**
 * Returns the limit per client: by default a quarter of `connections`. If `connections` is below four, a quarter would
 * round down to zero, so the limit is `connections`.
 */
export function connectionsPerClient({
  connections,
  connections_per_client,
}: Pick<Settings, 'connections' | 'connections_per_client'>): number {
  return connections_per_client ?? (connections < 4 ? connections : Math.floor(connections / 4))
}

/** Returns the limit with its configuration key, for the refusal. @param name the name of the upstream */
export function connectionLimitOf(name: string, config: UpstreamConfig): ConnectionLimit {
  return { limit: connectionsPerClient(config), key: `upstreams.${name}.connections_per_client` }
}

/**
 * Opens a pool with its own queue, because a request cannot be removed from undici's queue. In undici's queue, a
 * refused request would stay in memory, with all its headers, until a connection is free. undici's Pool also checks
 * every busy connection twice for each request. With 48 requests in flight, these checks are about 4 % of the cost of a
 * request.
 */
export function openConnectionPool(dial: Dial, initial: Settings): OpenPool {
  let settings = initial
  // All connections share one connector, because it caches TLS sessions.
  let connect = createConnector(dial, settings.timeouts.connect)
  const connections = new Set<PooledConnection>()
  /** The free connections, as a stack, so that the most recently used connection is reused first. */
  const free: PooledConnection[] = []
  const waiting = createWaitingLine<PooledConnection>()
  /** For each client, the number of connections that the client has, waits for, or has reserved. */
  const counts = new Map<ClientKey, number>()
  let isRetired = false
  let isClosed = false
  let onDrained = () => {}

  const isReusable = (connection: PooledConnection) =>
    !isRetired &&
    connections.size <= settings.connections &&
    (settings.connection_age === 0 || !connection.isOlderThan(settings.connection_age))

  function discard(connection: PooledConnection): void {
    connections.delete(connection)
    void connection.close()
    if (connections.size === 0) onDrained()
  }

  function reserve(client: ClientKey): void {
    counts.set(client, (counts.get(client) ?? 0) + 1)
  }

  function cancel(client: ClientKey): void {
    const count = counts.get(client) ?? 0
    if (count > 1) counts.set(client, count - 1)
    else counts.delete(client)
  }

  function take(connection: PooledConnection, client: ClientKey): PooledConnection {
    reserve(client)
    connection.holder = client
    return connection
  }

  function release(connection: PooledConnection): void {
    if (connection.holder !== undefined) cancel(connection.holder)
    connection.holder = undefined
    if (!isReusable(connection)) {
      discard(connection)
      if (!isRetired && waiting.length() > 0 && hasRoom()) waiting.serve(openConnection())
      return
    }
    if (waiting.serve(connection)) return
    // A connection that failed to open is used last.
    if (connection.hasFailed) free.unshift(connection)
    else free.push(connection)
  }

  const hasRoom = () => connections.size < settings.connections

  function openConnection(): PooledConnection {
    const connection = new PooledConnection({
      origin: dial.origin,
      // The settings may change after the connection was created. The next socket is opened with the current settings.
      connect: (options, callback) => connect(options, callback),
      onFree: release,
    })
    connections.add(connection)
    if (isClosed) void connection.close()
    return connection
  }

  return {
    hasFree: () => free.length > 0 || hasRoom(),
    admits(client) {
      const most = connectionsPerClient(settings)
      // If one client may take all connections, there is no limit per client. The client then waits in the queue like
      // all clients.
      return most >= settings.connections || (counts.get(client) ?? 0) < most
    },
    reserve,
    cancel,
    tryAcquire(client) {
      if (isRetired) return undefined
      for (let next = free.pop(); next !== undefined; next = free.pop()) {
        if (isReusable(next)) return take(next, client)
        discard(next)
      }
      return hasRoom() ? take(openConnection(), client) : undefined
    },
    async acquire(
      client,
      waitingClient,
      wait = { ms: settings.timeouts.connect, refusal: 'upstream_unavailable' },
    ) {
      if (isRetired) throw new EndpointRetired()
      const { share, leave } = waiting.join(wait.ms, () => new Refusal(wait.refusal))
      waitingClient.waiter = { onClientGone: () => leave(new ClientDisconnected()) }
      reserve(client)
      try {
        const connection = await share
        connection.holder = client
        return connection
      } catch (error) {
        cancel(client)
        throw error
      } finally {
        waitingClient.waiter = undefined
      }
    },
    configure(next) {
      if (next.timeouts.connect !== settings.timeouts.connect)
        connect = createConnector(dial, next.timeouts.connect)
      settings = next
      while (waiting.length() > 0 && hasRoom()) waiting.serve(openConnection())
    },
    retire() {
      isRetired = true
      waiting.dismiss(new EndpointRetired())
      for (const connection of free.splice(0)) discard(connection)
      return new Promise(resolve => {
        onDrained = resolve
        if (connections.size === 0) resolve()
      })
    },
    async close() {
      isClosed = true
      while (waiting.length() > 0) waiting.serve(openConnection())
      await Promise.all([...connections].map(connection => connection.close()))
    },
  }
}
