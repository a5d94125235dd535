// Redis behind the ScriptRunner interface: one server, Sentinel or Cluster; fails fast and reconnects by itself.
import { Cluster, type DNSLookupFunction, Redis, type RedisOptions } from 'ioredis'
import { createBatches } from '../../async/batches.ts'
import { evaluateAll, messageOf, type ScriptCall } from './evaluate-scripts.ts'
import { ScriptError, type ScriptRunner } from './redis-scripts.ts'

/** `redis://` or `rediss://`; list entries are such URLs, or `host:port`. */
export type RedisAddress = string | { cluster: string[] } | { sentinels: string[]; name: string }

export interface RedisHooks {
  onUp?(): void
  /** Called once per loss, with the reason. */
  onDown?(reason: string): void
}

/** The longest that a guard waits for Redis (CONTRACT §4: storage down is never a hang). */
const COMMAND_TIMEOUT_MS = 150
/** Scripts wait no longer than this, of that time, for a pipeline that is slow. */
const MAX_PIPELINE_WAIT_MS = 5
/** Bounds one write to Redis; a longer pipeline costs no less per script. */
const MAX_SCRIPTS_IN_PIPELINE = 100
/** Between two pings of a server that stopped responding. */
const PROBE_INTERVAL_MS = 500
/** How long until the server counts as down, at start and after a loss. */
const CONNECT_TIMEOUT_MS = 1_000

/**
 * Connects in the background and retries forever; a server that is down at start is used once it is up. After a
 * command without a response only occasional pings are sent until one is answered: while Redis is known to be down,
 * no request waits the 150 ms.
 */
export function openRedis(address: RedisAddress, hooks: RedisHooks = {}): ScriptRunner {
  const client = connect(address)
  let isSilent = false
  let wasUp: boolean | undefined
  let lastError = 'not connected'
  let probe: NodeJS.Timeout | undefined
  const waiting = new Set<() => void>()
  const isUp = () => client.status === 'ready' && !isSilent

  function reportState(): void {
    if (isUp() === wasUp) return
    wasUp = isUp()
    if (wasUp) {
      for (const resume of waiting) resume()
      hooks.onUp?.()
    } else hooks.onDown?.(lastError)
  }

  function withTimeout<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        markSilent()
        reject(new ScriptError(lastError))
      }, COMMAND_TIMEOUT_MS - MAX_PIPELINE_WAIT_MS)
      reply.then(
        value => {
          clearTimeout(timer)
          resolve(value)
        },
        error => {
          clearTimeout(timer)
          reject(error)
        },
      )
    })
  }

  function markSilent(): void {
    lastError = `no answer within ${COMMAND_TIMEOUT_MS} ms`
    isSilent = true
    reportState()
    probe ??= setInterval(() => void ping(), PROBE_INTERVAL_MS).unref()
  }

  async function ping(): Promise<boolean> {
    try {
      await withTimeout(client.ping())
    } catch {
      return false
    }
    clearInterval(probe)
    probe = undefined
    isSilent = false
    reportState()
    return true
  }

  const pipelines = createBatches({
    maxItems: MAX_SCRIPTS_IN_PIPELINE,
    maxWaitMs: MAX_PIPELINE_WAIT_MS,
    run: (calls: readonly ScriptCall[]) => withTimeout(evaluateAll(client, calls)),
  })

  client.on('ready', () => {
    isSilent = false
    reportState()
  })
  client.on('close', reportState)
  // Without a listener ioredis writes to the console.
  client.on('error', (error: Error) => {
    lastError = error.message
  })

  return {
    get isUp() {
      return isUp()
    },
    async run(script, key, args) {
      if (!isUp()) throw new ScriptError(`redis is down: ${lastError}`)
      try {
        return await pipelines({ script, key, args })
      } catch (error) {
        throw error instanceof ScriptError ? error : new ScriptError(`redis: ${messageOf(error)}`)
      }
    },
    ping,
    async whenUp(timeoutMs) {
      if (isUp()) return
      await new Promise<void>(resolve => {
        const resume = () => {
          clearTimeout(timer)
          waiting.delete(resume)
          resolve()
        }
        const timer = setTimeout(resume, timeoutMs)
        waiting.add(resume)
      })
    },
    async close() {
      clearInterval(probe)
      client.off('close', reportState)
      client.disconnect()
    },
  }
}

/**
 * Queues nothing without a connection, and sends nothing twice. No `commandTimeout`: a Cluster attempts a command
 * several times, so the deadline above covers all attempts.
 */
const failFast = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  // Tears down a silently dead connection and opens another.
  socketTimeout: 2_000,
} satisfies RedisOptions

const backoff = (times: number) => Math.min(50 * 2 ** Math.min(times, 6), 2_000)

function connect(address: RedisAddress): Redis | Cluster {
  const common = { ...failFast, enableOfflineQueue: false, retryStrategy: backoff }
  if (typeof address === 'string') return new Redis(address, common)
  if ('cluster' in address) return connectCluster(address.cluster.map(parse))
  const sentinels = address.sentinels.map(parse)
  const { username, password, tls } = credentialsOf(sentinels)
  return new Redis({
    ...common,
    name: address.name,
    sentinels: sentinels.map(({ host, port }) => ({ host, port: port ?? 26_379 })),
    sentinelRetryStrategy: backoff,
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    // The credentials in the Sentinels' addresses also apply to the server that they name.
    ...(username === undefined ? {} : { username, sentinelUsername: username }),
    ...(password === undefined ? {} : { password, sentinelPassword: password }),
    ...(tls ? { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true } : {}),
  })
}

function connectCluster(nodes: Node[]): Cluster {
  const { username, password, tls } = credentialsOf(nodes)
  const options = {
    enableOfflineQueue: false,
    clusterRetryStrategy: backoff,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    redisOptions: {
      ...failFast,
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(tls ? { tls: {} } : {}),
    },
    // Certificates are issued for names, so names must not be resolved before TLS sees them.
    ...(tls ? { dnsLookup: skipLookup } : {}),
  }
  return new Cluster(
    nodes.map(({ host, port }) => ({ host, port: port ?? 6_379 })),
    options,
  )
}

const skipLookup: DNSLookupFunction = (host, callback) => callback(null, host)

interface Node {
  host: string
  port: number | undefined
  username: string | undefined
  password: string | undefined
  tls: boolean
}

function parse(address: string): Node {
  const url = new URL(address.includes('://') ? address : `redis://${address}`)
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? undefined : Number(url.port),
    username: url.username === '' ? undefined : decodeURIComponent(url.username),
    password: url.password === '' ? undefined : decodeURIComponent(url.password),
    tls: url.protocol === 'rediss:',
  }
}

/** Credentials come from the first address that has a password; one `rediss://` makes all connections TLS. */
function credentialsOf(nodes: Node[]): Pick<Node, 'username' | 'password' | 'tls'> {
  const withPassword = nodes.find(({ password }) => password !== undefined)
  return {
    username: withPassword?.username,
    password: withPassword?.password,
    tls: nodes.some(({ tls }) => tls),
  }
}
