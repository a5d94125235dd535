// The record of daily use: two columns of `users`, changed by one conditional update (CONTRACT §4, "Counting").
import { createBatches } from '../async/batches.ts'
import { type Database, prepared } from '../storage/database.ts'

export interface UsageRecord {
  daily_usage: number
  /** `YYYY-MM-DD`, UTC; null before the first use. */
  last_usage_date: string | null
}

/** A user whose uses are counted several times is there as often. */
export type UserIds = readonly [number, ...number[]]

/** Uses of the day, including this one; undefined if it was not counted or the user does not exist. */
export type Counting = number | undefined | Promise<number | undefined>

export interface UsageStore {
  /**
   * Counts one use of each on `day` by one statement, unless `limit` are already counted or the record is dated tomorrow
   * (written by a replica whose clock is past midnight). Of any number of concurrent calls at most `limit` are counted.
   * @returns in their order; a promise where another holds the user's row
   * @throws StorageError
   */
  count(userIds: UserIds, day: string, limit: number): Promise<readonly Counting[]>
  /** @throws StorageError */
  read(userId: number): Promise<UsageRecord | undefined>
}

/**
 * At most 100 uses bound how long one statement holds rows and how many uses fail with it; a larger batch is no cheaper per
 * use. 300 ms with the timeouts of Redis and of a statement: storage that is down is known in under 2 s (CONTRACT §4).
 */
export const batchBounds = { maxItems: 100, maxWaitMs: 300 }

export function createUsageStore(database: Database): UsageStore {
  const lockedRows = createLockedRows(database)
  return {
    async count(userIds, day, limit) {
      const unlocked = userIds.filter(userId => !lockedRows.has(userId))
      const users = await countUnlocked(database, unlocked, day, limit)
      return userIds.map(userId => {
        const user = users.get(userId)
        return user === undefined ? lockedRows.count({ userId, day, limit }) : nextUse(user)
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

/** Users whose row another statement had locked. Their own uses wait for it, and nobody else's; first come, first served. */
function createLockedRows(database: Database) {
  const waiting = new Map<number, { uses: number; count: (use: Use) => Promise<number | undefined> }>()

  const createCount = () =>
    createBatches({
      ...batchBounds,
      areAlike: (first: Use, later: Use) => first.day === later.day && first.limit === later.limit,
      async run(uses) {
        const [{ userId, day, limit }] = uses
        const values = [userId, day, limit, uses.length]
        const [user] = await database.query<CountedUser>(COUNT_ONE_WAITING, values)
        return uses.map(() => user && nextUse(user))
      },
    })

  return {
    has: (userId: number) => waiting.has(userId),
    async count(use: Use): Promise<number | undefined> {
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

interface CountedUser {
  readonly id: number
  /** Uses of the day before this statement, then those that have been given out. */
  used: number
  readonly used_after: number
}

/** @returns the next of the user's uses that the statement counted; undefined once all are given out */
function nextUse(user: CountedUser): number | undefined {
  if (user.used === user.used_after) return undefined
  user.used += 1
  return user.used
}

/** @returns the users found and not locked, by id */
async function countUnlocked(
  database: Database,
  userIds: readonly number[],
  day: string,
  limit: number,
): Promise<ReadonlyMap<number, CountedUser>> {
  const usesByUser = new Map<number, number>()
  for (const userId of userIds) usesByUser.set(userId, (usesByUser.get(userId) ?? 0) + 1)
  const [ids, uses] = [[...usesByUser.keys()], [...usesByUser.values()]]
  if (ids.length === 0) return new Map()
  const rows = await (ids.length === 1
    ? database.query<CountedUser>(COUNT_ONE, [ids[0], day, limit, uses[0]])
    : database.query<CountedUser>(COUNT_MANY, [ids, day, limit, uses]))
  return new Map(rows.map(user => [user.id, user]))
}

// Each statement locks its rows before it updates them, so that `used` is the newest. Where it does not wait, it leaves out
// locked rows: two batches cannot deadlock, and no user waits for the row of another.

const USED_BEFORE = 'case when last_usage_date = $2::date then daily_usage else 0 end'
const HAS_USE_LEFT = `$3::int > 0
    and (last_usage_date is null or last_usage_date < $2::date or last_usage_date > $2::date + 1
      or (last_usage_date = $2::date and daily_usage < $3::int))`

/** Joins nothing: a use that comes alone takes Postgres little longer than a plain update. */
const countOneStatement = (locking: string) =>
  prepared(`
with locked as materialized (
  select id, ${USED_BEFORE} as used from users where id = $1
  for no key update ${locking}
), counted as (
  update users
  set daily_usage = least((select used from locked) + $4::int, $3::int), last_usage_date = $2::date
  where id = (select id from locked) and ${HAS_USE_LEFT}
  returning daily_usage
)
select id, used, coalesce((select daily_usage from counted), used) as used_after from locked`)

const COUNT_ONE = countOneStatement('skip locked')
const COUNT_ONE_WAITING = countOneStatement('')

/** Postgres would plan this anew each time if it could see how many users there are: hence `(select $1)`. */
const COUNT_MANY = prepared(`
with locked as materialized (
  select id, uses, ${USED_BEFORE} as used
  from users join unnest((select $1::bigint[]), (select $4::int[])) as wanted (id, uses) using (id)
  for no key update of users skip locked
), counted as (
  update users
  set daily_usage = least(locked.used + locked.uses, $3::int), last_usage_date = $2::date
  from locked
  where users.id = locked.id and ${HAS_USE_LEFT}
  returning users.id, daily_usage
)
select id, used, coalesce(daily_usage, used) as used_after
from locked left join counted using (id)`)
