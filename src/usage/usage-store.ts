// The record of daily use: two columns of `users`, changed by one conditional update (CONTRACT §4, "Counting").
import { createBatches } from '../async/batches.ts'
import { type Database, type Prepared, prepared } from '../storage/database.ts'

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

/** Bounds how long one statement holds rows, and how many uses fail with it. A larger batch is no cheaper per use. */
const maxUsesInBatch = 100
/** With the statement's own timeouts, the longest wait for storage that is down stays under 2 s (CONTRACT §4). */
const maxBatchWaitMs = 300

/** Uses that arrive while a statement is under way are counted together by the next. */
export function createUsageStore(database: Database): UsageStore {
  const batchesOf = (statement: Prepared, onMissing: Count): Count =>
    createBatches({
      maxItems: maxUsesInBatch,
      maxWaitMs: maxBatchWaitMs,
      // Two days at midnight, or two limits after a reload.
      areAlike: (first: Use, later: Use) => first.day === later.day && first.limit === later.limit,
      async run(uses) {
        const users = await countTogether(database, statement, uses)
        return uses.map(use => {
          const user = users.get(use.userId)
          if (user === undefined) return onMissing(use)
          if (user.used === user.used_after) return undefined
          user.used += 1
          return user.used
        })
      },
    })

  /** Users whose row another statement had locked. Their own uses wait for it, and nobody else's. */
  const waiting = new Map<number, { uses: number; count: Count }>()
  const waitForRow: Count = async use => {
    const user = waiting.get(use.userId) ?? {
      uses: 0,
      count: batchesOf(COUNT_WAITING, async () => undefined),
    }
    waiting.set(use.userId, user)
    user.uses += 1
    try {
      return await user.count(use)
    } finally {
      user.uses -= 1
      if (user.uses === 0) waiting.delete(use.userId)
    }
  }
  const count = batchesOf(COUNT_UNLOCKED, waitForRow)

  return {
    count(userId, day, limit) {
      const use = { userId, day, limit }
      return waiting.has(userId) ? waitForRow(use) : count(use)
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

/** @returns the user's uses of the day, including this one; undefined if it was not counted */
type Count = (use: Use) => Promise<number | undefined>

/** @param uses all of one day and limit @returns those found, by id */
async function countTogether(database: Database, statement: Prepared, uses: readonly [Use, ...Use[]]) {
  const usesByUser = new Map<number, number>()
  for (const { userId } of uses) usesByUser.set(userId, (usesByUser.get(userId) ?? 0) + 1)
  const [{ day, limit }] = uses
  const values = [[...usesByUser.keys()], day, limit, [...usesByUser.values()]]
  const rows = await database.query<CountedUser>(statement, values)
  return new Map(rows.map(row => [row.id, row]))
}

/** The rows are locked before they are updated, so that `used` is the newest. */
const countStatement = (locking: string) =>
  prepared(`
with locked as materialized (
  select id, uses, case when last_usage_date = $2::date then daily_usage else 0 end as used
  from users join unnest($1::bigint[], $4::int[]) as wanted (id, uses) using (id)
  for no key update of users ${locking}
), counted as (
  update users
  set daily_usage = least(locked.used + locked.uses, $3::int), last_usage_date = $2::date
  from locked
  where users.id = locked.id and $3::int > 0
    and (last_usage_date is null or last_usage_date < $2::date or last_usage_date > $2::date + 1
      or (last_usage_date = $2::date and daily_usage < $3::int))
  returning users.id, daily_usage
)
select id, used, coalesce(daily_usage, used) as used_after
from locked left join counted using (id)`)

/** Leaves out locked rows: two batches cannot deadlock, and no user waits for the row of another. */
const COUNT_UNLOCKED = countStatement('skip locked')
/** For one user at a time. */
const COUNT_WAITING = countStatement('')
