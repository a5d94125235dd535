// Stores the daily uses of each user in two columns of `users`. One conditional update changes both columns.
import { type Database, prepared } from '../storage/database.ts'
import { type CountedRow, createRowCounter, type UseGroup } from './row-counter.ts'

export interface UsageRecord {
  daily_usage: number
  /** `YYYY-MM-DD` in UTC. Null before the first use. */
  last_usage_date: string | null
}

/** One user ID for each use. The ID of a user with several uses occurs several times. */
export type UserIds = readonly [number, ...number[]]

/**
 * The result for one use. `used` is the user's number of uses on the day, including this use if it was counted. The
 * result is undefined if the user does not exist.
 */
export type Count = { readonly counted: boolean; readonly used: number } | undefined

export interface UsageStore {
  /**
   * Counts one use on `day` for each entry of `userIds`. A use is not counted if `limit` uses of the user are already
   * counted, or if the record already has the date of the next day. A replica whose clock is past midnight may have
   * written that date. Even concurrent calls count at most `limit` uses of a user.
   * @returns one result for each entry, in the same order. A result is a promise if the first statement did not decide
   *   it, for example because the user's row was locked.
   * @throws StorageError
   */
  count(userIds: UserIds, day: string, limit: number): Promise<readonly (Count | Promise<Count>)[]>
  /** @throws StorageError */
  read(userId: number): Promise<UsageRecord | undefined>
}

export function createUsageStore(database: Database): UsageStore {
  const count = createRowCounter<Use, Row, Exclude<Count, undefined>>({
    keyOf: ({ userId }) => userId,
    userOf: ({ userId }) => userId,
    costOf: () => 1,
    areAlike: (first, later) => first.day === later.day && first.limit === later.limit,
    async countUnlocked(groups) {
      const [{ use, uses }] = groups
      const rows = await (groups.length === 1
        ? database.query<Row>(COUNT_ONE_UNLOCKED, [use.userId, use.day, use.limit, uses])
        : database.query<Row>(COUNT_UNLOCKED, valuesOf(groups)))
      return new Map(rows.map(row => [row.id, row]))
    },
    async countWaiting(group) {
      const [row] = await database.query<Row>(COUNT_WAITING, valuesOf([group]))
      return row
    },
    resultOf: (counted, used) => ({ counted, used }),
  })
  return {
    count: (userIds, day, limit) => count(userIds.map(userId => ({ userId, day, limit }))),
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

interface Row extends CountedRow {
  readonly id: number
}

/** All uses of a call have the same day and limit. */
function valuesOf(groups: readonly [UseGroup<Use>, ...UseGroup<Use>[]]): unknown[] {
  const [{ use }] = groups
  return [groups.map(group => group.use.userId), use.day, use.limit, groups.map(({ uses }) => uses)]
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
/** Waits for a locked row. Each call is for one user, so that no other user waits. */
const COUNT_WAITING = countStatement('')

/**
 * Counts the uses of a single user. Returns no row if nothing was counted. Without arrays, this statement is hardly
 * slower than a plain update.
 */
const COUNT_ONE_UNLOCKED = prepared(`
update users set daily_usage = ${USED_AFTER}, last_usage_date = $2::date
from (
  select id, $4::int as uses, ${USED_BEFORE} as used from users where id = $1 for no key update skip locked
) as locked
where users.id = locked.id and ${HAS_USE_LEFT}
returning users.id, used, daily_usage as used_after`)
