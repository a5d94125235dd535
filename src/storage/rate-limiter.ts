// Rate limits in fixed windows: counted in Redis; in memory without Redis or while it is down.
import { hash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import type { LimitNames, RateLimitState } from '../refusals/limits.ts'
import { createMemoryRateLimiter } from './memory-rate-limiter.ts'
import { defineScript, type ScriptRunner } from './redis/redis-scripts.ts'

export interface RateLimiter {
  /** Consumes one slot of the key; of N concurrent calls exactly `limit` are allowed. Never throws, never hangs. */
  consume(key: string): Promise<RateLimitResult>
  /** Refunds one allowed `consume`, for calls that turn out not to count (a login that succeeded). */
  refund(key: string): Promise<void>
}

interface RateLimitResult extends RateLimitState {
  allowed: boolean
}

export interface Limit {
  limit: number
  windowMs: number
}

type RateLimiterName = 'register' | 'login' | 'login_address' | 'refresh' | 'bad_keys'
export type RateLimiters = Readonly<Record<RateLimiterName, RateLimiter>>

interface Dependencies {
  clock: Clock
  /** Absent without Redis. */
  scriptRunner?: ScriptRunner | undefined
  /** Called at each call that memory counted because Redis failed. */
  onFailure?: ((error: unknown) => void) | undefined
}

/** Creates the limiter of a name; `null` turns the limit off. */
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
  }
}

/** The names of the limits of `auth.rate_limits`. */
export const limitNames: Readonly<Record<RateLimiterName, LimitNames>> = {
  register: { policy: 'register', key: 'auth.rate_limits.register' },
  login: { policy: 'login', key: 'auth.rate_limits.login_failures' },
  login_address: { policy: 'login_address', key: 'auth.rate_limits.login_failures_per_address' },
  refresh: { policy: 'refresh', key: 'auth.rate_limits.refresh' },
  bad_keys: { policy: 'bad_keys', key: 'auth.rate_limits.bad_keys' },
}

/** @param name part of the keys in Redis: replicas share the limit, two limits do not */
export function createRateLimiter(
  name: string,
  limit: Limit | null,
  dependencies: Dependencies,
): RateLimiter {
  if (limit === null) return unlimited
  const { clock, scriptRunner, onFailure } = dependencies
  const alone = inMemory(limit, clock)
  const limiter =
    scriptRunner === undefined ? alone : withMemoryFallback(name, limit, alone, scriptRunner, onFailure)
  return {
    consume: key => limiter.consume(shortKey(key)),
    refund: key => limiter.refund(shortKey(key)),
  }
}

const unlimited: RateLimiter = {
  consume: async () => ({
    allowed: true,
    limit: Infinity,
    windowMs: 0,
    remaining: Infinity,
    resetSeconds: 1,
  }),
  refund: async () => {},
}

function inMemory(limit: Limit, clock: Clock): RateLimiter {
  const memory = createMemoryRateLimiter(limit, clock)
  return {
    consume: async key => toResult(limit, memory.consume(key)),
    refund: async key => memory.refund(key),
  }
}

/** Slots that memory counted while Redis was down are not carried over when it returns: a limit may then double. */
function withMemoryFallback(
  name: string,
  limit: Limit,
  alone: RateLimiter,
  scriptRunner: ScriptRunner,
  onFailure: Dependencies['onFailure'],
): RateLimiter {
  const redisKey = (key: string) => `peage:limit:${name}:${key}`
  return {
    async consume(key) {
      try {
        const reply = await scriptRunner.run(CONSUME, redisKey(key), [limit.limit, limit.windowMs])
        const [allowed, used, resetMs] = reply as [number, number, number]
        return toResult(limit, { allowed: allowed === 1, used, resetMs })
      } catch (error) {
        onFailure?.(error)
        return alone.consume(key)
      }
    },
    async refund(key) {
      try {
        await scriptRunner.run(REFUND, redisKey(key), [])
      } catch (error) {
        onFailure?.(error)
        await alone.refund(key)
      }
    },
  }
}

function toResult(
  { limit, windowMs }: Limit,
  counted: { allowed: boolean; used: number; resetMs: number },
): RateLimitResult {
  return {
    allowed: counted.allowed,
    limit,
    windowMs,
    remaining: Math.max(0, limit - counted.used),
    resetSeconds: Math.max(1, Math.ceil(counted.resetMs / 1000)),
  }
}

/** A key is as long as the client chooses: an email is not yet known to be one. */
function shortKey(key: string): string {
  return key.length <= 64 ? key : `#${hash('sha256', key, 'base64url')}`
}

/** A refused call is not counted: its count would outlast the refunds. */
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
