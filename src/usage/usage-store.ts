// The record of daily use: two columns of `users`, changed by one conditional update (CONTRACT §4, "Counting").
import { createBatches } from '../async/batches.ts'
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

/** Bounds how long one statement holds rows, and how many uses fail with it; a larger batch costs no less per use. */
const maxUsesInBatch = 100
/** Uses wait no longer than this for a statement that is slow, or that waits for a row. */
const maxBatchWaitMs = 5

/** Uses that arrive while a statement is under way are counted together by the next. */
export function createUsageStore(database: Database): UsageStore {
  async function countOne({ userId, day, limit }: Use): Promise<number | undefined> {
    const [row] = await database.query<{ daily_usage: number }>(COUNT, [userId, day, limit])
    return row?.daily_usage
  }

  async function countAll(
    uses: readonly Use[],
  ): Promise<(number | undefined | Promise<number | undefined>)[]> {
    const [first] = uses
    if (first === undefined || uses.length === 1) return Promise.all(uses.map(countOne))
    const { day, limit } = first
    const usesByUser = groupByUser(uses)
    const ids = [...usesByUser.keys()]
    const rows = await database.query<CountedUser>(COUNT_ALL, [ids, day, limit, [...usesByUser.values()]])
    const users = new Map(rows.map(row => [row.id, row]))
    return uses.map(use => {
      const user = users.get(use.userId)
      // Its row is locked elsewhere, and only this use waits for it; or there is no such row.
      if (user === undefined) return countOne(use)
      if (user.used === user.used_after) return undefined
      user.used += 1
      return user.used
    })
  }

  const counting = createBatches({
    maxItems: maxUsesInBatch,
    maxWaitMs: maxBatchWaitMs,
    // Two days at midnight, or two limits after a reload.
    areAlike: (first: Use, later: Use) => first.day === later.day && first.limit === later.limit,
    run: countAll,
  })
  return {
    count: (userId, day, limit) => counting({ userId, day, limit }),
    async read(userId) {
      const [row] = await database.query<UsageRecord>(
        'select daily_usage, last_usage_date from users where id = $1',
        [userId],
      )
      return row
    },
  }
}

interface Use {
  readonly userId: number
  readonly day: string
  readonly limit: number
}

interface CountedUser {
  readonly id: number
  /** Uses of the day before this batch, then those that have been given out. */
  used: number
  readonly used_after: number
}

/** @returns the number of uses of each user */
function groupByUser(uses: readonly Use[]): Map<number, number> {
  const byUser = new Map<number, number>()
  for (const { userId } of uses) byUser.set(userId, (byUser.get(userId) ?? 0) + 1)
  return byUser
}

const hasUsesLeft = `$3::int > 0
  and (last_usage_date is null or last_usage_date < $2::date or last_usage_date > $2::date + 1
    or (last_usage_date = $2::date and daily_usage < $3::int))`

const COUNT = prepared(`
update users
set daily_usage = case when last_usage_date = $2::date then daily_usage + 1 else 1 end,
    last_usage_date = $2::date
where id = $1 and ${hasUsesLeft}
returning daily_usage`)

// `skip locked`: it waits for no row, so that two batches cannot deadlock, and one locked row delays its own user only.
// The rows are locked before they are updated, which makes `used` the newest.
const COUNT_ALL = prepared(`
with locked as materialized (
  select id, uses, case when last_usage_date = $2::date then daily_usage else 0 end as used
  from users join unnest($1::bigint[], $4::int[]) as asked (id, uses) using (id)
  for no key update of users skip locked
), counted as (
  update users
  set daily_usage = least(locked.used + locked.uses, $3::int), last_usage_date = $2::date
  from locked
  where users.id = locked.id and ${hasUsesLeft}
  returning users.id, daily_usage
)
select id, used, coalesce(daily_usage, used) as used_after
from locked left join counted using (id)`)
