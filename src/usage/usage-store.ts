// Stores the daily use in two columns of `users`, changed by one conditional update.
import { createBatches } from '../async/batches.ts'
import { type Database, prepared } from '../storage/database.ts'

export interface UsageRecord {
  daily_usage: number
  /** `YYYY-MM-DD` in UTC. Null before the first use. */
  last_usage_date: string | null
}

/** The IDs of users, one for each use. So a user with several uses occurs several times. */
export type UserIds = readonly [number, ...number[]]

/**
 * The result for one use. `used` is the user's number of uses on the day, including this use if it was counted. The
 * result is undefined if the user does not exist.
 */
export type Count = { readonly counted: boolean; readonly used: number } | undefined

export interface UsageStore {
  /**
   * Counts one use of each user on `day` in one statement. A use is not counted if `limit` uses are already counted, or
   * if the record already has the date of the next day. A replica whose clock is past midnight may have written that
   * date. In any number of concurrent calls, at most `limit` are counted.
   * @returns the results in the order of the ids; a promise if a second statement has to decide, for example for a
   * locked row
   * @throws StorageError
   */
  count(userIds: UserIds, day: string, limit: number): Promise<readonly (Count | Promise<Count>)[]>
  /** @throws StorageError */
  read(userId: number): Promise<UsageRecord | undefined>
}

/**
 * The limits of a batch. A statement of at most 100 uses locks its rows only briefly, and its failure affects at most
 * 100 uses. Larger batches are not cheaper per use. A batch waits at most 300 ms for the batch before it. Together
 * with the timeouts of Redis and Postgres, this is less than 2 s, so a storage failure is noticed within that time.
 */
export const batchBounds = { maxItems: 100, maxWaitMs: 300 }

export function createUsageStore(database: Database): UsageStore {
  const waitingUsers = createWaitingUsers(database)
  return {
    async count(userIds, day, limit) {
      const others = userIds.filter(userId => !waitingUsers.has(userId))
      const rows = await countUnlocked(database, others, day, limit)
      return userIds.map(userId => {
        const row = rows.get(userId)
        return row === undefined ? waitingUsers.count({ userId, day, limit }) : nextCount(row)
      })
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

/**
 * Decides the uses that the first statement did not count, because the user's row is locked or does not exist, or
 * because the user has no use left. Each user has a separate queue, in the order of the calls. So no user waits for the
 * row of another user.
 */
function createWaitingUsers(database: Database) {
  const waiting = new Map<number, { uses: number; count: (use: Use) => Promise<Count> }>()

  const createCount = () =>
    createBatches({
      ...batchBounds,
      areAlike: (first: Use, later: Use) => first.day === later.day && first.limit === later.limit,
      async run(uses) {
        const [{ userId, day, limit }] = uses
        const values = [[userId], day, limit, [uses.length]]
        const [row] = await database.query<CountedRow>(COUNT_WAITING, values)
        return uses.map(() => row && nextCount(row))
      },
    })

  return {
    has: (userId: number) => waiting.has(userId),
    async count(use: Use): Promise<Count> {
      const user = waiting.get(use.userId) ?? { uses: 0, count: createCount() }
      waiting.set(use.userId, user)
      user.uses += 1
      try {
        return await user.count(use)
      } finally {
        user.uses -= 1
        if (user.uses === 0) waiting.delete(use.userId)
      }
    },
  }
}

interface CountedRow {
  readonly id: number
  /**
   * The number of uses of this day: first those counted before the statement, then one more for each use that
   * `nextCount` has returned.
   */
  used: number
  readonly used_after: number
}

/**
 * Returns one of the uses that a statement has counted together.
 * @returns the next use; `counted: false` if no counted use is left
 */
function nextCount(row: CountedRow): Count {
  const counted = row.used < row.used_after
  if (counted) row.used += 1
  return { counted, used: row.used }
}

/**
 * @returns the rows by user id; it has no row for a user whose row is locked, and perhaps none for a user without a
 * counted use
 */
async function countUnlocked(
  database: Database,
  userIds: readonly number[],
  day: string,
  limit: number,
): Promise<ReadonlyMap<number, CountedRow>> {
  const usesByUser = new Map<number, number>()
  for (const userId of userIds) usesByUser.set(userId, (usesByUser.get(userId) ?? 0) + 1)
  const [ids, uses] = [[...usesByUser.keys()], [...usesByUser.values()]]
  if (ids.length === 0) return new Map()
  const rows = await (ids.length === 1
    ? database.query<CountedRow>(COUNT_ONE_UNLOCKED, [ids[0], day, limit, uses[0]])
    : database.query<CountedRow>(COUNT_UNLOCKED, [ids, day, limit, uses]))
  return new Map(rows.map(row => [row.id, row]))
}

// Each statement locks its rows before it updates them, so `used` is the newest value. With `skip locked`, two batches
// cannot deadlock, and no user waits for the row of another user.

const USED_BEFORE = 'case when last_usage_date = $2::date then daily_usage else 0 end'
const USED_AFTER = 'least(locked.used + locked.uses, $3::int)'
const HAS_USE_LEFT = `$3::int > 0
  and (last_usage_date is null or last_usage_date < $2::date or last_usage_date > $2::date + 1
    or (last_usage_date = $2::date and daily_usage < $3::int))`

/**
 * `(select …)` hides the length of the arrays from the planner. Otherwise, Postgres would make a new plan for each
 * length.
 */
const countStatement = (locking: string) =>
  prepared(`
with locked as materialized (
  select id, uses, ${USED_BEFORE} as used
  from users join unnest((select $1::bigint[]), (select $4::int[])) as wanted (id, uses) using (id)
  for no key update of users ${locking}
), counted as (
  update users set daily_usage = ${USED_AFTER}, last_usage_date = $2::date
  from locked
  where users.id = locked.id and ${HAS_USE_LEFT}
  returning users.id, daily_usage
)
select id, used, coalesce(daily_usage, used) as used_after
from locked left join counted using (id)`)

const COUNT_UNLOCKED = countStatement('skip locked')
/** Waits for a locked row, so it is called for one user at a time. */
const COUNT_WAITING = countStatement('')

/**
 * If this statement counts nothing, it returns no row. It takes no arrays, so for a single use it is hardly slower than
 * a plain update.
 */
const COUNT_ONE_UNLOCKED = prepared(`
update users set daily_usage = ${USED_AFTER}, last_usage_date = $2::date
from (
  select id, $4::int as uses, ${USED_BEFORE} as used from users where id = $1 for no key update skip locked
) as locked
where users.id = locked.id and ${HAS_USE_LEFT}
returning users.id, used, daily_usage as used_after`)
