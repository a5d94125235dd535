// Connects to one Redis server, to the server that Sentinels report, or to a Cluster. Fails fast, and reconnects by
// itself.
import { Cluster, Redis, type RedisOptions } from 'ioredis'

/** The address of Redis. Every URL in it begins with `redis://` or `rediss://`. */
export type RedisAddress = string | { cluster: string[] } | { sentinels: string[]; name: string }

/** The time limit to connect. After this time, the server counts as down. */
const connectTimeoutMs = 1_000

/**
 * Without a connection, a command fails at once and is not queued. A command is not sent again after a lost connection.
 * There is no `commandTimeout`, because a Cluster tries a command several times, and a deadline must include all
 * attempts.
 */
const failFast = {
  connectTimeout: connectTimeoutMs,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // Closes a connection that does not respond but reports no error. Then another connection is opened.
  socketTimeout: 2_000,
} satisfies RedisOptions

const backoff = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000)

/** Minimum time between two attempts to leave a server that has become a replica. */
const leaveReplicaMs = 2_000

/** @param onReplica called with the reason, before the connection to a server that has become a replica is closed */
export function connectRedis(
  address: RedisAddress,
  onReplica: (reason: string) => void = () => {},
): Redis | Cluster {
  const common = {
    ...failFast,
    enableOfflineQueue: false,
    retryStrategy: backoff,
    reconnectOnError: leaveReplicas(onReplica),
  }
  if (typeof address === 'string') return new Redis(address, common)
  if ('cluster' in address) return connectCluster(address.cluster)
  const { nodes, username, password, isTls } = parse(address.sentinels, 26_379)
  return new Redis({
    ...common,
    name: address.name,
    sentinels: nodes,
    sentinelRetryStrategy: backoff,
    sentinelCommandTimeout: connectTimeoutMs,
    // The credentials in the addresses of the Sentinels are also used for the server that the Sentinels report.
    username,
    password,
    sentinelUsername: username,
    sentinelPassword: password,
    ...(isTls ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  })
}

/**
 * Reconnects when the server has become a replica. After a failover, the former primary is a replica. It refuses every
 * script, but keeps its connections open. A new connection leads to the new primary. If the replica is the only server,
 * a new connection does not help. So the gateway reconnects at most once per `leaveReplicaMs`.
 */
function leaveReplicas(onReplica: (reason: string) => void): (error: Error) => boolean {
  let leftAt = Number.NEGATIVE_INFINITY
  return ({ message }) => {
    // If a script is refused, Redis 6 wraps `READONLY` in another error text.
    if (!message.includes('READONLY') || performance.now() - leftAt < leaveReplicaMs) return false
    leftAt = performance.now()
    onReplica(message)
    return true
  }
}

function connectCluster(addresses: readonly string[]): Cluster {
  const { nodes, username, password, isTls } = parse(addresses, 6_379)
  return new Cluster(nodes, {
    enableOfflineQueue: false,
    clusterRetryStrategy: backoff,
    slotsRefreshTimeout: connectTimeoutMs,
    redisOptions: { ...failFast, username, password, ...(isTls ? { tls: {} } : {}) },
    // A certificate contains a name, so TLS must receive the name and not a resolved address.
    ...(isTls ? { dnsLookup: (host, callback) => callback(null, host) } : {}),
  })
}

/**
 * Parses the addresses. The credentials come from the first address with a password. One `rediss://` address enables
 * TLS for all connections.
 */
function parse(addresses: readonly string[], defaultPort: number) {
  const urls = addresses.map(address => new URL(address))
  const { username = '', password = '' } = urls.find(url => url.password !== '') ?? {}
  return {
    nodes: urls.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || defaultPort),
    })),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    isTls: urls.some(({ protocol }) => protocol === 'rediss:'),
  }
}
