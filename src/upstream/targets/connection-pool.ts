// An endpoint's connections, one request on each at a time. A request that finds none free waits, and can be refused.
import { createWaitingLine } from '../../async/semaphore.ts'
import type { UpstreamConfig } from '../../config/sections/schema.ts'
import type { ClientKey } from '../../identity/client-key.ts'
import type { ConnectionLimit } from '../../refusals/limits.ts'
import { ClientDisconnected, Refusal } from '../../refusals/refusal.ts'
import { type Connection, PooledConnection } from './connection.ts'
import { createConnector, type Dial } from './dial.ts'

export interface ConnectionPool {
  hasFree(): boolean
  /** Whether the client may take one more connection (`connections_per_client`). */
  admits(client: ClientKey): boolean
  /** Counts a connection that the client takes later. Call `cancel` before it is taken, or when it is not needed. */
  reserve(client: ClientKey): void
  cancel(client: ClientKey): void
  /** @returns undefined if none is free, or the endpoint is retired */
  tryAcquire(client: ClientKey): Connection | undefined
  /**
   * Waits for a connection, first come first served. A client that waits counts as if it had the connection.
   * @param wait instead of `timeouts.connect` and 503 `upstream_unavailable` (CONTRACT §2, `connections`)
   * @throws Refusal when the wait is over
   * @throws ClientDisconnected when the client leaves
   * @throws EndpointRetired when the endpoint is retired: nothing was sent, so another can be tried
   */
  acquire(client: ClientKey, waitingClient: WaitingClient, wait?: Wait): Promise<Connection>
}

/** Code that waits for an upstream on behalf of a client. */
export interface Waiter {
  /** Called once if the client's connection closes before the response has ended. */
  onClientGone(): void
}

/**
 * The client of a request that waits for a connection, and later for its upstream. The relay and the tunnel are waiters
 * themselves, so a request that does not queue creates no function for it. V8 would keep such a function, and its request,
 * in memory until the next full collection.
 */
export interface WaitingClient {
  waiter: Waiter | undefined
}

/** How long at most, in milliseconds, and the refusal then. */
export interface Wait {
  readonly ms: number
  readonly refusal: 'upstream_unavailable' | 'upstream_timeout'
}

interface OpenPool extends ConnectionPool {
  /** Applies other limits to what is opened and awaited from now on. */
  configure(settings: Settings): void
  /** Takes no new request: free connections are closed, the others after their last response. Resolves after them. */
  retire(): Promise<void>
  /** Closes all connections, even with requests in flight; requests sent later fail. */
  close(): Promise<void>
}

/** Its address is no longer one of the target's. */
export class EndpointRetired extends Error {
  override readonly name = 'EndpointRetired'
}

type Settings = Pick<UpstreamConfig, 'connections' | 'connections_per_client' | 'connection_age' | 'timeouts'>

/** `connections_per_client`, by default a quarter of `connections`. A quarter of fewer than four would be none. */
export function connectionsPerClient({
  connections,
  connections_per_client,
}: Pick<Settings, 'connections' | 'connections_per_client'>): number {
  return connections_per_client ?? (connections < 4 ? connections : Math.floor(connections / 4))
}

/** The limit of `connectionsPerClient` with its key, for the refusal. @param name of the upstream */
export function connectionLimitOf(name: string, config: UpstreamConfig): ConnectionLimit {
  return { limit: connectionsPerClient(config), key: `upstreams.${name}.connections_per_client` }
}

/**
 * Requests wait here and not in undici's queue, from which they cannot be removed: requests refused long ago would
 * stay in memory, with all their headers, for as long as the connections are busy. undici's Pool also checks every
 * busy connection twice for each request: some 4 % of a request's cost with 48 in flight.
 */
export function openConnectionPool(dial: Dial, initial: Settings): OpenPool {
  let settings = initial
  // Shared by all connections, since it caches TLS sessions.
  let connect = createConnector(dial, settings.timeouts.connect)
  const connections = new Set<PooledConnection>()
  /** A stack: the connection used most recently is reused first. */
  const free: PooledConnection[] = []
  const waiting = createWaitingLine<PooledConnection>()
  /** By client, how many connections it has, waits for or has reserved. */
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
    // A connection that failed to open is not retried while there are others.
    if (connection.hasFailed) free.unshift(connection)
    else free.push(connection)
  }

  const hasRoom = () => connections.size < settings.connections

  function openConnection(): PooledConnection {
    const connection = new PooledConnection({
      origin: dial.origin,
      // By the settings of the moment, also where an old connection opens its socket again.
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
      // A share of all of them is no limit of its own: the client waits as others do.
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
