// Stores the uses of quotas, in one row per user, quota and kind of period (`day` or `month`). The clock of Postgres
// determines the current period.
import { createSingleFlight } from '../async/single-flight.ts'
import type { Period } from '../config/formats/units.ts'
import { countRows, type Database, type Queryable, type TransactionStep } from '../storage/database.ts'
import type { User } from '../users/user.ts'
import { lockUser } from '../users/user-record-store.ts'

/** The uses of one user in the current periods. */
export interface QuotaRecords {
  /** The ends of the current day and month in UTC. */
  readonly ends: Readonly<Record<Period, Date>>
  readonly uses: readonly QuotaUses[]
}

export interface QuotaUses {
  readonly quota: string
  readonly period: Period
  readonly used: number
  /** Whether the period of the record is in the future, which happens if the clock of Postgres was set back. */
  readonly isAhead: boolean
}

/** Every method throws StorageError if the store fails. */
export interface QuotaRecordStore {
  /**
   * Reads the uses of a user. Concurrent calls for one user share one read.
   * @param tx the transaction for the read; the read is then not shared
   */
  read(userId: number, tx?: Queryable): Promise<QuotaRecords>
  /**
   * Resets the uses of one quota, both per day and per month.
   * @returns undefined if the user does not exist
   */
  reset(userId: number, quota: string, inTransaction: TransactionStep): Promise<User | undefined>
  /** Resets the uses of all quotas of a user, in the transaction of the caller. */
  resetAll(tx: Queryable, userId: number): Promise<void>
  /**
   * Call this when a record has changed. A later `read` of the user then does not share a read that began before the
   * change.
   * @param change the notification, for example `quota 17 exports`; undefined if any record may have changed
   */
  onChange(change?: string): void
  /**
   * Deletes records of periods that ended more than one day ago, up to `limit` daily records and up to `limit` monthly
   * records. Keeps all other records, even if their period is in the future.
   * @returns the number of deleted records
   */
  prune(limit: number): Promise<number>
}

export function createQuotaRecordStore(database: Database): QuotaRecordStore {
  const reads = createSingleFlight((userId: number) => readRecords(database, userId))
  return {
    read: (userId, tx) => (tx === undefined ? reads.run(userId) : readRecords(tx, userId)),
    reset: (userId, quota, inTransaction) =>
      database.transaction(async tx => {
        const user = await lockUser(tx, userId)
        if (user === undefined) return undefined
        await tx.query('delete from quota_usage where user_id = $1 and quota = $2', [userId, quota])
        await inTransaction(tx)
        return user
      }),
    async resetAll(tx, userId) {
      await tx.query('delete from quota_usage where user_id = $1', [userId])
    },
    onChange(change) {
      if (change === undefined) return reads.forgetAll()
      const [kind, userId] = change.split(' ')
      if (kind === 'quota') reads.forget(Number(userId))
    },
    prune: limit => countRows(database, PRUNE, [limit]),
  }
}

type Row = { day_end: Date; month_end: Date } & (
  | { quota: null }
  | { quota: string; period: Period; used: number; is_ahead: boolean }
)

async function readRecords(queryable: Queryable, userId: number): Promise<QuotaRecords> {
  const rows = await queryable.query<Row>(READ, [userId])
  const [{ day_end, month_end }] = rows as [Row]
  return {
    ends: { day: day_end, month: month_end },
    uses: rows.flatMap(row => {
      if (row.quota === null) return []
      const { quota, period, used, is_ahead: isAhead } = row
      return [{ quota, period, used, isAhead }]
    }),
  }
}

/** Returns at least one row. If the user has no uses in the current periods, `quota` is null in this row. */
const READ = `
select (date_trunc('day', at) + interval '1 day') at time zone 'utc' as day_end,
       (date_trunc('month', at) + interval '1 month') at time zone 'utc' as month_end,
       quota, period, used, period_start > at as is_ahead
  from (select now() at time zone 'utc' as at) as clock
  left join quota_usage on user_id = $1
   and period_start between date_trunc(period, at) and at + interval '1 day'`

/**
 * A locked row is skipped, because a request is using this row to count a use of a new period. Each `order by` makes
 * Postgres use the index, even if the statistics were collected before the period ended.
 */
const PRUNE = `
delete from quota_usage where ctid = any(
  array(select ctid from quota_usage
         where period = 'day' and period_start < (now() at time zone 'utc') - interval '2 days'
         order by period_start limit $1 for update skip locked)
  || array(select ctid from quota_usage
            where period = 'month' and period_start < (now() at time zone 'utc') - interval '1 day 1 month'
            order by period_start limit $1 for update skip locked)
)
returning user_id`
