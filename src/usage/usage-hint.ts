// The hint in Redis of a user's uses today: it saves work on the record, and never decides alone.
import { defineScript, type ScriptRunner } from '../storage/redis/redis-scripts.ts'
import { dayAfterEndSeconds } from './utc-day.ts'

export interface UsageHint {
  /**
   * Counts one use if fewer than `limit` are counted.
   * @throws ScriptError within 150 ms
   */
  reserve(userId: number, day: string, limit: number): Promise<'room' | 'full'>
  /** Sets the count to the record's. @throws ScriptError within 150 ms */
  set(userId: number, day: string, used: number): Promise<void>
}

export function createUsageHint(keyValue: ScriptRunner): UsageHint {
  const redisKey = (userId: number, day: string) => `peage:usage:${day}:${userId}`
  return {
    async reserve(userId, day, limit) {
      const reply = await keyValue.run(RESERVE, redisKey(userId, day), [limit, dayAfterEndSeconds(day)])
      return reply === 1 ? 'room' : 'full'
    },
    async set(userId, day, used) {
      await keyValue.run(SET, redisKey(userId, day), [used, dayAfterEndSeconds(day)])
    },
  }
}

const RESERVE = defineScript(
  'reserve_use',
  `
if tonumber(redis.call('get', KEYS[1]) or '0') >= tonumber(ARGV[1]) then
  return 0
end
redis.call('incr', KEYS[1])
redis.call('expireat', KEYS[1], ARGV[2])
return 1
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
