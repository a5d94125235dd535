// The record of daily use: two columns of `users`, changed by one conditional update (CONTRACT §4, "Counting").
import { type Database, prepared } from '../storage/database.ts'

export interface UsageRecord {
  daily_usage: number
  /** `YYYY-MM-DD`, UTC; null before the first use. */
  last_usage_date: string | null
}

export interface UsageStore {
  /**
   * Counts one use on `day`, unless `limit` are already counted or the record is dated tomorrow (written by a replica
   * whose clock is past midnight). Of any number of concurrent calls at most `limit` are counted.
   * @returns uses of the day, including this one; `undefined` if it was not counted or the user does not exist
   * @throws StorageError
   */
  count(userId: number, day: string, limit: number): Promise<number | undefined>
  /** @throws StorageError */
  read(userId: number): Promise<UsageRecord | undefined>
}

export function createUsageStore(database: Database): UsageStore {
  return {
    async count(userId, day, limit) {
      const [row] = await database.query<{ daily_usage: number }>(COUNT, [userId, day, limit])
      return row?.daily_usage
    },
    async read(userId) {
      const [row] = await database.query<UsageRecord>(
        'select daily_usage, last_usage_date from users where id = $1',
        [userId],
      )
      return row
    },
  }
}

const COUNT = prepared(`
update users
set daily_usage = case when last_usage_date = $2::date then daily_usage + 1 else 1 end,
    last_usage_date = $2::date
where id = $1 and $3::int > 0
  and (last_usage_date is null or last_usage_date < $2::date or last_usage_date > $2::date + 1
    or (last_usage_date = $2::date and daily_usage < $3::int))
returning daily_usage`)
