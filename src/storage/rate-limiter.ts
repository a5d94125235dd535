// Rate limits in fixed windows: counted in Redis where there is one, else, or while it is down, in memory.
import { hash } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { createMemoryWindows, type Windows } from './memory-rate-limiter.ts'
import { defineScript, type KeyValue } from './redis/redis-scripts.ts'

export interface Limiter {
  /** Takes one of the key's places; of N at once exactly `limit` are allowed. Never throws, never hangs. */
  take(key: string): Promise<Taken>
  /** Undoes one take that was allowed, for what turns out not to count (a login that succeeded). */
  giveBack(key: string): Promise<void>
}

export interface Taken {
  allowed: boolean
  /** Places a window; infinite where the limit is off. */
  limit: number
  /** Length of the window, in milliseconds. */
  window: number
  /** Places left in this window. */
  remaining: number
  /** Whole seconds, at least 1, until the window ends. */
  resetSeconds: number
}

export interface Limit {
  limit: number
  /** Milliseconds. */
  window: number
}

export type LimiterName = 'register' | 'login' | 'login_address' | 'refresh' | 'bad_keys'
export type Limiters = Readonly<Record<LimiterName, Limiter>>

interface Parts {
  clock: Clock
  /** Absent where there is no Redis. */
  keyValue?: KeyValue | undefined
}

/** Makes the limiter of a name; `null` is a limit that is off. */
export type CreateLimiter = (name: string, limit: Limit | null) => Limiter

/** @param limits `auth.rate_limits` (CONTRACT §2) */
export function createLimiters(
  limits: Readonly<
    Record<
      'register' | 'login_failures' | 'login_failures_per_address' | 'refresh' | 'bad_keys',
      Limit | null
    >
  >,
  create: CreateLimiter,
): Limiters {
  return {
    register: create('register', limits.register),
    login: create('login', limits.login_failures),
    login_address: create('login_address', limits.login_failures_per_address),
    refresh: create('refresh', limits.refresh),
    bad_keys: create('bad_keys', limits.bad_keys),
  }
}

/** @param name part of the keys in Redis, so that replicas share the limit and two limits do not */
export function createLimiter(name: string, limit: Limit | null, parts: Parts): Limiter {
  if (limit === null) return unlimited
  const memory = createMemoryWindows(limit, parts.clock)
  const { keyValue } = parts
  if (keyValue === undefined)
    return { take: async key => taken(limit, memory.take(key)), giveBack: async key => memory.giveBack(key) }
  return insured(name, limit, memory, keyValue)
}

const unlimited: Limiter = {
  take: async () => ({ allowed: true, limit: Infinity, window: 0, remaining: Infinity, resetSeconds: 1 }),
  giveBack: async () => {},
}

/** A place that memory counted while Redis was down is not carried over when it returns: a limit may then double. */
function insured(name: string, limit: Limit, memory: Windows, keyValue: KeyValue): Limiter {
  const redisKey = (key: string) => `peage:limit:${name}:${bounded(key)}`
  return {
    async take(key) {
      try {
        const reply = await keyValue.run(TAKE, redisKey(key), [limit.limit, limit.window])
        const [allowed, used, resetMs] = reply as [number, number, number]
        return taken(limit, { allowed: allowed === 1, used, resetMs })
      } catch {
        return taken(limit, memory.take(bounded(key)))
      }
    },
    async giveBack(key) {
      try {
        await keyValue.run(GIVE_BACK, redisKey(key), [])
      } catch {
        memory.giveBack(bounded(key))
      }
    },
  }
}

function taken({ limit, window }: Limit, spent: { allowed: boolean; used: number; resetMs: number }): Taken {
  return {
    allowed: spent.allowed,
    limit,
    window,
    remaining: Math.max(0, limit - spent.used),
    resetSeconds: Math.max(1, Math.ceil(spent.resetMs / 1000)),
  }
}

/** An email may be 254 characters, and whatever else becomes a key is the client's choice. */
function bounded(key: string): string {
  return key.length <= 64 ? key : `#${hash('sha256', key, 'base64url')}`
}

/** A refused take is not counted: it would outlast what is given back. */
const TAKE = defineScript(
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

const GIVE_BACK = defineScript(
  'give_back_place',
  `
if tonumber(redis.call('get', KEYS[1]) or '0') > 0 then
  redis.call('decr', KEYS[1])
end
return 0
`,
)
