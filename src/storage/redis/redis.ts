// Implements ScriptRunner, and tracks whether Redis responds, so that no request waits while Redis is down.
import { Redis, ReplyError } from 'ioredis'
import { createBatches } from '../../async/batches.ts'
import { connectRedis, type RedisAddress } from './connect-redis.ts'
import { evaluateAll, evaluateForAll, messageOf, type ScriptCall } from './evaluate-scripts.ts'
import { defineScript, ScriptError, type ScriptRunner } from './redis-scripts.ts'

export interface RedisHooks {
  onUp?(): void
  /** Called once each time Redis goes down, with the reason. */
  onDown?(reason: string): void
}

/** The maximum time that a guard waits for Redis, so that no request hangs. */
const COMMAND_TIMEOUT_MS = 150
/**
 * While a pipeline waits for its replies, later scripts wait too, so that they can be sent together. They wait at most
 * this long. `COMMAND_TIMEOUT_MS` includes this wait.
 */
const MAX_PIPELINE_WAIT_MS = 5
/** Limits the size of one write to Redis. A longer pipeline would not make a script cheaper. */
const MAX_SCRIPTS_IN_PIPELINE = 100
/** The interval between checks of a server that is down. */
const CHECK_INTERVAL_MS = 500

/**
 * Checks whether Redis runs scripts. The check uses every command of the gateway's scripts. A server may reply to PING
 * and still refuse scripts. For example, the Redis user may lack a permission, the server may be a replica, or its
 * memory may be full.
 */
const CHECK = defineScript(
  'check_redis',
  `
redis.call('set', KEYS[1], '0')
redis.call('incr', KEYS[1])
redis.call('decr', KEYS[1])
redis.call('expireat', KEYS[1], '4102444800')
redis.call('pexpire', KEYS[1], '10000')
return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}
`,
)
const CHECK_KEY = 'peage:limit:check'

/**
 * Connects in the background and retries forever. If the server is down at the start, the gateway uses it as soon as it
 * is up. If a command gets no response or a check fails, the gateway sends only checks, one every 500 ms, until a check
 * succeeds. Until then, scripts fail at once, so no request waits for the command timeout of 150 ms.
 */
export function openRedis(address: RedisAddress, hooks: RedisHooks = {}): ScriptRunner {
  /** Whether the last check of this connection succeeded, and nothing has timed out since. */
  let isFit = false
  let wasUp: boolean | undefined
  let lastError = 'not connected'
  let refusedDatabase: string | undefined
  const client = connectRedis(address, reason => {
    lastError = reason
  })
  const database = client instanceof Redis ? client.options.db : undefined
  let timer: NodeJS.Timeout | undefined
  let checking: Promise<boolean> | undefined
  const waiting = new Set<() => void>()
  const isUp = () => client.status === 'ready' && isFit

  function reportState(): void {
    if (isUp() === wasUp) return
    wasUp = isUp()
    if (wasUp) hooks.onUp?.()
    else hooks.onDown?.(lastError)
  }

  function withTimeout<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        markUnfit(`no response within ${COMMAND_TIMEOUT_MS} ms`)
        reject(new ScriptError(lastError))
      }, COMMAND_TIMEOUT_MS - MAX_PIPELINE_WAIT_MS)
      reply.finally(() => clearTimeout(timer)).then(resolve, reject)
    })
  }

  function markUnfit(reason: string): void {
    lastError = reason
    isFit = false
    reportState()
    timer ??= setInterval(() => void check(), CHECK_INTERVAL_MS).unref()
  }

  function check(): Promise<boolean> {
    checking ??= runCheck().finally(() => {
      checking = undefined
    })
    return checking
  }

  async function runCheck(): Promise<boolean> {
    try {
      await withTimeout(selectDatabase())
      await withTimeout(evaluateForAll(client, CHECK, [CHECK_KEY], []))
    } catch (error) {
      if (error instanceof ScriptError) return false
      const isReply = error instanceof ReplyError
      // If the connection was lost, the reason is already in `lastError`.
      markUnfit(isReply || !(client instanceof Redis) ? messageOf(error) : lastError)
      if (isReply) for (const resume of waiting) resume()
      return false
    }
    clearInterval(timer)
    timer = undefined
    isFit = true
    reportState()
    for (const resume of waiting) resume()
    return true
  }

  /** Selects the database again, because ioredis uses database 0 after a refused SELECT. */
  async function selectDatabase(): Promise<void> {
    if (!(client instanceof Redis) || !database) return
    try {
      await client.select(database)
      refusedDatabase = undefined
    } catch (error) {
      if (error instanceof ReplyError) refusedDatabase = messageOf(error)
      throw error
    }
  }

  async function whileUp<T>(work: () => Promise<T>): Promise<T> {
    if (!isUp()) throw new ScriptError(`redis is down: ${lastError}`)
    try {
      return await work()
    } catch (error) {
      if (error instanceof ScriptError) throw error
      // The error may concern only one key, or Redis may refuse every script. The check finds out which.
      void check()
      throw new ScriptError(`redis: ${messageOf(error)}`)
    }
  }

  const pipelines = createBatches({
    maxItems: MAX_SCRIPTS_IN_PIPELINE,
    maxWaitMs: MAX_PIPELINE_WAIT_MS,
    run: (calls: readonly ScriptCall[]) => withTimeout(evaluateAll(client, calls)),
  })

  client.on('ready', () => {
    isFit = false
    void check()
  })
  client.on('close', reportState)
  // Without this listener, ioredis would write the error to the console.
  client.on('error', (error: Error) => {
    lastError = error.message
  })

  return {
    isUp,
    run: (script, key, args) => whileUp(() => pipelines({ script, keys: [key], args })),
    runForAll: (script, keys, args) => whileUp(() => withTimeout(evaluateForAll(client, script, keys, args))),
    ping: check,
    async whenUp(timeoutMs) {
      if (!isUp()) {
        await new Promise<void>(resolve => {
          const limit = setTimeout(resume, timeoutMs)
          waiting.add(resume)
          function resume(): void {
            clearTimeout(limit)
            waiting.delete(resume)
            resolve()
          }
        })
      }
      if (refusedDatabase === undefined) return
      throw new ScriptError(
        `the Redis server rejected database ${database} of storage.redis (${refusedDatabase}). Choose another database.`,
      )
    },
    async close() {
      clearInterval(timer)
      client.off('close', reportState)
      client.disconnect()
    },
  }
}
