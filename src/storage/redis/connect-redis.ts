// Connects to one server, to the one that Sentinels name, or to a Cluster; fails fast and reconnects by itself.
import { Cluster, Redis, type RedisOptions } from 'ioredis'

/** `redis://` or `rediss://` addresses. */
export type RedisAddress = string | { cluster: string[] } | { sentinels: string[]; name: string }

/** How long until the server counts as down, at start and after a loss. */
const connectTimeoutMs = 1_000

/**
 * Queues nothing without a connection, and sends nothing twice. No `commandTimeout`: a Cluster attempts a command
 * several times, and a deadline must cover all attempts.
 */
const failFast = {
  connectTimeout: connectTimeoutMs,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // Tears down a silently dead connection and opens another.
  socketTimeout: 2_000,
} satisfies RedisOptions

const backoff = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000)

/** Between two attempts to find the primary from a server that says it is a replica. */
const leaveReplicaMs = 2_000

/** @param onReplica told why, before a connection to a server that has become a replica is given up */
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
    // The credentials in the Sentinels' addresses also apply to the server that they name.
    username,
    password,
    sentinelUsername: username,
    sentinelPassword: password,
    ...(isTls ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  })
}

/**
 * After a fail-over the address leads to another server, or the Sentinels name one, while the former primary keeps our
 * connection open and refuses every script. It may also be the only one there is, so this is not done at each refusal.
 */
function leaveReplicas(onReplica: (reason: string) => void): (error: Error) => boolean {
  let leftAt = Number.NEGATIVE_INFINITY
  return ({ message }) => {
    // Redis 6 wraps what a script was refused in an error of its own.
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
    // Certificates are issued for names, so names must not be resolved before TLS sees them.
    ...(isTls ? { dnsLookup: (host, callback) => callback(null, host) } : {}),
  })
}

/** Credentials come from the first address that has a password; one `rediss://` makes all connections TLS. */
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
