// Counts the uses of quotas in the table `quota_usage`. The clock of Postgres determines the current period:
// docs/plans.md#how-uses-are-counted. Redis is not used: docs/dev/decisions/012-quotas-without-redis.md.
import { createBatches } from '../async/batches.ts'
import type { Period } from '../config/formats/units.ts'
import { type Database, prepared, StorageError } from '../storage/database.ts'
import { batchBounds, type CountedRow, createRowCounter, type UseGroup } from './row-counter.ts'
import { periodEndMs } from './utc-day.ts'

export interface QuotaUse {
  readonly userId: number
  /** The name of the quota. */
  readonly quota: string
  readonly period: Period
  /** The allowance of the user's plan, in uses per period. */
  readonly limit: number
  /** The number of uses that this request adds. */
  readonly cost: number
}

/** The decision on one use. */
export interface QuotaCount {
  readonly counted: boolean
  /**
   * The number of uses in the record, including this use if it was counted. After a change of the plan, this number can
   * be greater than the limit.
   */
  readonly used: number
  /**
   * Whether the period of the record is in the future, which happens if the clock of Postgres was set back. The use is
   * then not counted.
   */
  readonly isAhead: boolean
  /** The end of the current period, in milliseconds since the epoch. */
  readonly resetsAtMs: number
  /** The time from the decision to the end of the period in milliseconds, on the clock of Postgres. */
  readonly leftMs: number
}

export interface QuotaCounter {
  /**
   * Adds the cost to the uses of the current period if the sum does not exceed the limit. Even concurrent calls with
   * the same limit never count more uses than this limit in a period.
   * @returns undefined if the user does not exist
   * @throws StorageError
   */
  use(use: QuotaUse): Promise<QuotaCount | undefined>
}

export function createQuotaCounter(database: Database): QuotaCounter {
  const count = createRowCounter<QuotaUse, Row, QuotaCount>({
    keyOf: rowKey,
    userOf: ({ userId }) => userId,
    costOf: ({ cost }) => cost,
    areAlike: (first, later) => first.cost === later.cost && first.limit === later.limit,
    async countUnlocked(groups) {
      const rows = await (groups.length === 1
        ? database.query<Row>(COUNT_ONE_UNLOCKED, valuesOf(groups[0]))
        : database.query<Row>(COUNT_UNLOCKED, columnsOf(groups)))
      return new Map(rows.map(row => [rowKey({ ...row, userId: row.user_id }), row]))
    },
    async countWaiting(group) {
      for (let attempt = 1; attempt <= maxAttempts; attempt++) {
        const [row] = await database.query<WaitingRow>(COUNT_WAITING, valuesOf(group)).catch(ifUserExists)
        if (row === undefined || !row.is_user) return undefined
        if (row.used_after !== null) return { ...row, used_after: row.used_after }
      }
      throw new StorageError(
        'the quota row was repeatedly created and deleted by other transactions',
        undefined,
        undefined,
      )
    },
    resultOf,
  })
  return { use: createBatches<QuotaUse, QuotaCount | undefined>({ ...batchBounds, run: count }) }
}

interface Row extends CountedRow {
  readonly user_id: number
  readonly quota: string
  readonly period: Period
  /** The first day of the current period, `YYYY-MM-DD` in UTC. */
  readonly starts: string
  /** The time of the statement, in milliseconds since the epoch. */
  readonly now_ms: number
  readonly is_ahead: boolean
}

interface WaitingRow extends Omit<Row, 'used_after'> {
  readonly used: number
  used_after: number | null
  readonly is_user: boolean
}

/**
 * The maximum number of attempts. An attempt inserts a missing row. If another statement inserts this row first, the
 * attempt fails, and the next attempt finds the row.
 */
const maxAttempts = 3

/** Returns no rows if the user was deleted while the statement inserted a row (a foreign-key violation). */
function ifUserExists(error: unknown): WaitingRow[] {
  if (error instanceof StorageError && error.code === '23503') return []
  throw error
}

function rowKey({ userId, quota, period }: Pick<QuotaUse, 'userId' | 'quota' | 'period'>): string {
  return `${userId} ${quota} ${period}`
}

function resultOf(
  counted: boolean,
  used: number,
  { starts, period, now_ms, is_ahead: isAhead }: Row,
): QuotaCount {
  const resetsAtMs = periodEndMs(period, Date.parse(starts))
  return { counted, used, isAhead, resetsAtMs, leftMs: resetsAtMs - now_ms }
}

function valuesOf({ use: { userId, quota, period, limit, cost }, uses }: UseGroup<QuotaUse>): unknown[] {
  return [userId, quota, period, limit, cost, uses]
}

function columnsOf(groups: readonly UseGroup<QuotaUse>[]): unknown[] {
  const rows = groups.map(valuesOf)
  return [0, 1, 2, 3, 4, 5].map(column => rows.map(row => row[column]))
}

// Each statement locks its rows before it updates them, so `used` is the newest value. With `skip locked`, two batches
// cannot deadlock, and no user waits for the row of another user.

const NOW = "now() at time zone 'utc'"
const NOW_MS = '(extract(epoch from now()) * 1000)::double precision as now_ms'
const starts = (period: string) => `date_trunc(${period}, ${NOW})::date`
/** A record that starts more than one day in the future was stored with a wrong clock. So its uses are ignored. */
const STARTS_SOON = `q.period_start <= ${NOW} + interval '1 day'`
const IS_AHEAD = `q.period_start > ${NOW} and ${STARTS_SOON}`
const used = (first: string) =>
  `case when q.period_start >= ${first} and ${STARTS_SOON} then q.used else 0 end`
const USED_AFTER = 'locked.used + locked.cost * least(locked.uses, (locked.max - locked.used) / locked.cost)'
/** Other programs may set `used` to any bigint. So `used` is not added to the cost, because the sum could overflow. */
const HAS_ROOM = 'not locked.is_ahead and locked.used <= locked.max - locked.cost'

const columns = (period: string) => `q.user_id, q.quota, q.period, ${starts(period)} as starts,
    ${IS_AHEAD} as is_ahead, ${used(starts(period))} as used`

/**
 * `(select …)` hides the length of the arrays from the planner. Otherwise, Postgres would make a new plan for each
 * length.
 */
const COUNT_UNLOCKED = prepared(`
with locked as materialized (
  select ${columns('q.period')}, w.max, w.cost, w.uses
  from unnest((select $1::bigint[]), (select $2::text[]), (select $3::text[]), (select $4::bigint[]),
    (select $5::bigint[]), (select $6::bigint[])) as w (user_id, quota, period, max, cost, uses)
    join quota_usage q using (user_id, quota, period)
  for no key update of q skip locked
), counted as (
  update quota_usage q set used = ${USED_AFTER}, period_start = locked.starts
  from locked
  where (q.user_id, q.quota, q.period) = (locked.user_id, locked.quota, locked.period) and ${HAS_ROOM}
  returning q.user_id, q.quota, q.period, q.used
)
select user_id, quota, period, locked.starts, locked.is_ahead, locked.used,
  coalesce(counted.used, locked.used) as used_after, ${NOW_MS}
from locked left join counted using (user_id, quota, period)`)

const LOCKED_ONE = `select ${columns('$3::text')}, $4::bigint as max, $5::bigint as cost, $6::bigint as uses
  from quota_usage q where q.user_id = $1 and q.quota = $2 and q.period = $3::text for no key update of q`

/** Counts the uses of one row, and is hardly slower than a plain update. Returns no row if nothing was counted. */
const COUNT_ONE_UNLOCKED = prepared(`
update quota_usage q set used = ${USED_AFTER}, period_start = locked.starts
from (${LOCKED_ONE} skip locked) as locked
where (q.user_id, q.quota, q.period) = ($1, $2, $3::text) and ${HAS_ROOM}
returning q.user_id, q.quota, q.period, locked.starts, locked.is_ahead, locked.used, q.used as used_after, ${NOW_MS}`)

/** Waits for a locked row. Each call is for one user, so that no other user waits. Inserts a missing row. */
const COUNT_WAITING = prepared(`
with locked as materialized (${LOCKED_ONE}
), counted as (
  update quota_usage q set used = ${USED_AFTER}, period_start = locked.starts
  from locked
  where (q.user_id, q.quota, q.period) = ($1, $2, $3::text) and ${HAS_ROOM}
  returning q.used
), inserted as (
  insert into quota_usage (user_id, quota, period, period_start, used)
  select u.id, $2, $3::text, ${starts('$3::text')}, $5::bigint * least($6::bigint, $4::bigint / $5::bigint)
  from users u where u.id = $1 and not exists (select from locked)
  on conflict do nothing
  returning used
)
select u.id as user_id, $2 as quota, $3::text as period, ${starts('$3::text')} as starts,
  coalesce(locked.is_ahead, false) as is_ahead, coalesce(locked.used, 0) as used,
  coalesce(counted.used, inserted.used, locked.used) as used_after, ${NOW_MS}, u.id is not null as is_user
from (select) as one
  left join users u on u.id = $1 left join locked on true left join counted on true left join inserted on true`)
