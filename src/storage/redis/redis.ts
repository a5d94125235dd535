// Redis behind the ScriptRunner interface: knows whether it answers, and lets no request wait for one that does not.
import { createBatches } from '../../async/batches.ts'
import { connectRedis, type RedisAddress } from './connect-redis.ts'
import { evaluateAll, evaluateForAll, messageOf, type ScriptCall } from './evaluate-scripts.ts'
import { ScriptError, type ScriptRunner } from './redis-scripts.ts'

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

/**
 * Connects in the background and retries forever; a server that is down at start is used once it is up. After a
 * command without a response only occasional pings are sent until one is answered: while Redis is known to be down,
 * no request waits the 150 ms.
 */
export function openRedis(address: RedisAddress, hooks: RedisHooks = {}): ScriptRunner {
  let isSilent = false
  let wasUp: boolean | undefined
  let lastError = 'not connected'
  const client = connectRedis(address, reason => {
    lastError = reason
  })
  let probe: NodeJS.Timeout | undefined
  const isUp = () => client.status === 'ready' && !isSilent

  function reportState(): void {
    if (isUp() === wasUp) return
    wasUp = isUp()
    if (wasUp) hooks.onUp?.()
    else hooks.onDown?.(lastError)
  }

  function withTimeout<T>(reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        markSilent()
        reject(new ScriptError(lastError))
      }, COMMAND_TIMEOUT_MS - MAX_PIPELINE_WAIT_MS)
      reply.finally(() => clearTimeout(timer)).then(resolve, reject)
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
    isUp,
    async run(script, key, args) {
      if (!isUp()) throw new ScriptError(`redis is down: ${lastError}`)
      try {
        return await pipelines({ script, key, args })
      } catch (error) {
        throw toScriptError(error)
      }
    },
    async runForAll(script, keys, args) {
      if (!isUp()) throw new ScriptError(`redis is down: ${lastError}`)
      try {
        return await withTimeout(evaluateForAll(client, script, keys, args))
      } catch (error) {
        throw toScriptError(error)
      }
    },
    ping,
    async whenUp(timeoutMs) {
      if (isUp()) return
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, timeoutMs)
        client.once('ready', () => {
          clearTimeout(timer)
          resolve()
        })
      })
    },
    async close() {
      clearInterval(probe)
      client.off('close', reportState)
      client.disconnect()
    },
  }
}

function toScriptError(error: unknown): ScriptError {
  return error instanceof ScriptError ? error : new ScriptError(`redis: ${messageOf(error)}`)
}
