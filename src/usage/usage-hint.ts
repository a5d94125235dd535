// Keeps an approximate count of each user's uses today in Redis. This hint saves work in Postgres, but it never decides
// whether a use is allowed.
import { defineScript, type ScriptRunner } from '../storage/redis/redis-scripts.ts'
import type { UserIds } from './usage-store.ts'
import { dayAfterEndSeconds } from './utc-day.ts'

export interface UsageHint {
  /**
   * Counts one use for each id whose count is below `limit`. An id may occur several times.
   * @returns the results in the order of the ids; a result is an Error if Redis failed only for this id
   * @throws ScriptError if Redis fails or does not respond within 150 ms
   */
  reserve(userIds: UserIds, day: string, limit: number): Promise<readonly ('room' | 'full' | Error)[]>
  /**
   * Sets the count to the value stored in Postgres.
   * @throws ScriptError if Redis fails or does not respond within 150 ms
   */
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

/**
 * If a key has the wrong Redis type, only the reply for this key is an error. If a value is not a number, the script
 * reports that the limit is reached.
 */
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
