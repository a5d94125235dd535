// Implements rate limits with fixed windows. Requests are counted in Redis, or in memory if Redis is down or not
// configured.
import { hash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import type { LimitNames, RateLimitState } from '../refusals/limits.ts'
import { createMemoryRateLimiter, type MemoryRateLimiter } from './memory-rate-limiter.ts'
import { defineScript, type Script, type ScriptRunner } from './redis/redis-scripts.ts'

export interface RateLimiter {
  /**
   * Uses one slot of the key. Allows exactly `limit` calls per window, even if more calls run at the same time. Never
   * throws and never hangs.
   */
  consume(key: string): Promise<RateLimitResult>
  /** Refunds the slot of an allowed `consume` that should not count, for example after a successful login. */
  refund(key: string): Promise<void>
}

interface RateLimitResult extends RateLimitState {
  allowed: boolean
}

export interface Limit {
  limit: number
  windowMs: number
}

type RateLimiterName = 'register' | 'login' | 'login_address' | 'refresh' | 'bad_keys' | 'keys' | 'external'
export type RateLimiters = Readonly<Record<RateLimiterName, RateLimiter>>

interface Dependencies {
  clock: Clock
  scriptRunner?: ScriptRunner | undefined
  /** Called with the error each time Redis fails. The limiter then counts or refunds in memory. */
  onFailure?: ((error: unknown) => void) | undefined
}

/** Creates the limiter with this name. If `limit` is `null`, the limit is off. */
export type CreateRateLimiter = (name: string, limit: Limit | null) => RateLimiter

export function createRateLimiters(
  limits: Config['auth']['rate_limits'],
  create: CreateRateLimiter,
): RateLimiters {
  return {
    register: create('register', limits.register),
    login: create('login', limits.login_failures),
    login_address: create('login_address', limits.login_failures_per_address),
    refresh: create('refresh', limits.refresh),
    bad_keys: create('bad_keys', limits.bad_keys),
    keys: create('keys', limits.keys),
    external: create('external', limits.external),
  }
}

export const limitNames: Readonly<Record<RateLimiterName, LimitNames>> = {
  register: { policy: 'register', key: 'auth.rate_limits.register' },
  login: { policy: 'login', key: 'auth.rate_limits.login_failures' },
  login_address: { policy: 'login_address', key: 'auth.rate_limits.login_failures_per_address' },
  refresh: { policy: 'refresh', key: 'auth.rate_limits.refresh' },
  bad_keys: { policy: 'bad_keys', key: 'auth.rate_limits.bad_keys' },
  keys: { policy: 'keys', key: 'auth.rate_limits.keys' },
  external: { policy: 'external', key: 'auth.rate_limits.external' },
}

/** @param name the name of the limit, which is part of its keys in Redis; replicas share limits with the same name */
export function createRateLimiter(
  name: string,
  limit: Limit | null,
  { clock, scriptRunner, onFailure }: Dependencies,
): RateLimiter {
  if (limit === null) return unlimited
  const { limit: most, windowMs } = limit
  const memory = createMemoryRateLimiter(limit, clock)

  /** Runs a script on the key. @returns undefined if Redis is not configured, or if Redis fails */
  async function inRedis(script: Script, key: string, args: readonly number[]): Promise<unknown> {
    try {
      return await scriptRunner?.run(script, `peage:limit:${name}:${key}`, args)
    } catch (error) {
      onFailure?.(error)
      return undefined
    }
  }

  // Slots that were counted in memory while Redis was down are not transferred to Redis. So when Redis is up again, a
  // client may get up to twice the limit.
  return {
    async consume(longKey) {
      const key = shortKey(longKey)
      const reply = await inRedis(CONSUME, key, [most, windowMs])
      if (reply === undefined) return toResult(limit, memory.consume(key))
      const [allowed, used, resetMs] = reply as [number, number, number]
      return toResult(limit, { allowed: allowed === 1, used, resetMs })
    },
    async refund(longKey) {
      const key = shortKey(longKey)
      if ((await inRedis(REFUND, key, [])) === undefined) memory.refund(key)
    },
  }
}

const unlimited: RateLimiter = {
  consume: async () => toResult({ limit: Infinity, windowMs: 0 }, { allowed: true, used: 0, resetMs: 0 }),
  refund: async () => {},
}

function toResult(
  { limit, windowMs }: Limit,
  { allowed, used, resetMs }: ReturnType<MemoryRateLimiter['consume']>,
): RateLimitResult {
  const remaining = Math.max(0, limit - used)
  return { allowed, limit, windowMs, remaining, resetSeconds: Math.max(1, Math.ceil(resetMs / 1000)) }
}

/**
 * Shortens a long key. The length must be limited, because the client chooses the content of a key. For example, an
 * email in a key is not validated yet.
 */
function shortKey(key: string): string {
  return key.length <= 64 ? key : `#${hash('sha256', key, 'base64url')}`
}

/**
 * A refused call is not counted. Otherwise, the refunds of allowed calls might not bring the count below the limit
 * again.
 */
const CONSUME = defineScript(
  'take_place',
  `
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local used = tonumber(redis.call('get', KEYS[1]) or '0')
local allowed = 0
if used < limit then
  used = redis.call('incr', KEYS[1])
  allowed = 1
end
local left = redis.call('pttl', KEYS[1])
if left < 0 or left > window then
  redis.call('pexpire', KEYS[1], window)
  left = window
end
return {allowed, used, left}
`,
)

const REFUND = defineScript(
  'give_back_place',
  `
if tonumber(redis.call('get', KEYS[1]) or '0') > 0 then
  redis.call('decr', KEYS[1])
end
return 0
`,
)
