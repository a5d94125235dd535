// The hint in Redis of a user's uses today: it saves work on the record, and never decides alone.
import { defineScript, type ScriptRunner } from '../storage/redis/redis-scripts.ts'
import type { UserIds } from './usage-store.ts'
import { dayAfterEndSeconds } from './utc-day.ts'

export interface UsageHint {
  /**
   * Counts one use for each, a user's as often as the id is there, where fewer than `limit` are counted.
   * @returns in their order; an Error for what alone failed
   * @throws ScriptError within 150 ms
   */
  reserve(userIds: UserIds, day: string, limit: number): Promise<readonly ('room' | 'full' | Error)[]>
  /** Sets the count to the record's. @throws ScriptError within 150 ms */
  set(userId: number, day: string, used: number): Promise<void>
}

export function createUsageHint(keyValue: ScriptRunner): UsageHint {
  const redisKey = (userId: number, day: string) => `peage:usage:${day}:${userId}`
  return {
    async reserve([first, ...others], day, limit) {
      const keys: [string, ...string[]] = [redisKey(first, day)]
      for (const userId of others) keys.push(redisKey(userId, day))
      const replies = await keyValue.runForAll(RESERVE, keys, [limit, dayAfterEndSeconds(day)])
      return replies.map(reply => (reply instanceof Error ? reply : reply === 1 ? 'room' : 'full'))
    },
    async set(userId, day, used) {
      await keyValue.run(SET, redisKey(userId, day), [used, dayAfterEndSeconds(day)])
    },
  }
}

/** A user's key may be there several times. What is not a number fails alone. */
const RESERVE = defineScript(
  'reserve_uses',
  `
local limit = tonumber(ARGV[1])
local replies = {}
for i, key in ipairs(KEYS) do
  local used = redis.pcall('get', key)
  if type(used) == 'table' then
    replies[i] = used
  elseif (tonumber(used or '0') or limit) >= limit then
    replies[i] = 0
  else
    if redis.call('incr', key) == 1 then
      redis.call('expireat', key, ARGV[2])
    end
    replies[i] = 1
  end
end
return replies
`,
)

const SET = defineScript(
  'set_uses',
  `
redis.call('set', KEYS[1], ARGV[1])
redis.call('expireat', KEYS[1], ARGV[2])
return 1
`,
)
