// Reads and changes the table `quota_usage` by plain SQL, for the model test.
import type { Period } from './rules.ts'

/** Runs a statement on the database of the gateways. */
export type Query = <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>

/** The meaning of a record at the current time. */
export interface RecordState {
  /** The uses that count in the current period. */
  readonly used: number
  /** Whether the period of the record starts within the next 24 hours. If so, every use is refused. */
  readonly isAhead: boolean
}

export interface Records {
  /** The current day in UTC, according to the clock of Postgres. */
  readonly today: string
  of(key: string): RecordState
  readonly keys: readonly string[]
}

/** One row before and after a change by SQL. The statement that changes the row also returns both states. */
export interface RowChange {
  readonly key: string
  readonly before: RecordState
  readonly after: RecordState
}

interface Row {
  user_id: number
  quota: string
  period: Period
  period_start: string
  used: number
  now: string
}

const none: RecordState = { used: 0, isAhead: false }
const NOW = "(now() at time zone 'utc')"
const COLUMNS = `user_id::int, quota, period, period_start::text, used::int, ${NOW}::text as now`

export function keyOf(userId: number, quota: string, period: Period): string {
  return `${userId} ${quota} ${period}`
}

export async function readRecords(query: Query): Promise<Records> {
  const all = await query<Omit<Row, 'user_id'> & { user_id: number | null }>(
    `select ${COLUMNS} from (select) as one left join quota_usage on true`,
  )
  const rows = all.filter((row): row is Row => row.user_id !== null)
  const states = new Map(rows.map(row => [keyOfRow(row), stateOf(row)]))
  return {
    today: String(all[0]?.now).slice(0, 10),
    of: key => states.get(key) ?? none,
    keys: [...states.keys()],
  }
}

function keyOfRow({ user_id, quota, period }: Row): string {
  return keyOf(user_id, quota, period)
}

function stateOf({ period, period_start, used, now }: Row): RecordState {
  const current = period === 'day' ? now.slice(0, 10) : `${now.slice(0, 7)}-01`
  if (period_start === current) return { used, isAhead: false }
  const aheadMs = Date.parse(`${period_start}T00:00:00Z`) - Date.parse(`${now.replace(' ', 'T')}Z`)
  return period_start > current && aheadMs <= 86_400_000 ? { used, isAhead: true } : none
}

/** The SQL assignment of each update. `endPeriod` moves the record to the previous day or month. */
const updates = {
  halve: 'used = q.used / 2',
  endPeriod: "period_start = (q.period_start - ('1 ' || q.period)::interval)::date",
  moveAhead: `period_start = (date_trunc(q.period, ${NOW}) + ('1 ' || q.period)::interval)::date`,
  moveFarAhead: `period_start = (date_trunc(q.period, ${NOW}) + ('2 ' || q.period)::interval)::date`,
} as const

export type Update = keyof typeof updates

/** Changes the records of a user. @param quota undefined for all quotas */
export async function updateRecords(
  query: Query,
  userId: number,
  quota: string | undefined,
  update: Update,
): Promise<RowChange[]> {
  const rows = await query<Row & { new_start: string; new_used: number }>(
    `with old as materialized (select * from quota_usage where ${CHOSEN} for update)
     update quota_usage q set ${updates[update]} from old
     where (q.user_id, q.quota, q.period) = (old.user_id, old.quota, old.period)
     returning old.user_id::int, old.quota, old.period, old.period_start::text, old.used::int, ${NOW}::text as now,
       q.period_start::text as new_start, q.used::int as new_used`,
    [userId, quota ?? null],
  )
  return rows.map(row => ({
    key: keyOfRow(row),
    before: stateOf(row),
    after: stateOf({ ...row, period_start: row.new_start, used: row.new_used }),
  }))
}

/** Deletes the records of a user. @param quota undefined for all quotas */
export async function deleteRecords(query: Query, userId: number, quota?: string): Promise<RowChange[]> {
  const rows = await query<Row>(`delete from quota_usage where ${CHOSEN} returning ${COLUMNS}`, [
    userId,
    quota ?? null,
  ])
  return rows.map(row => ({ key: keyOfRow(row), before: stateOf(row), after: none }))
}

const CHOSEN = 'user_id = $1 and quota = coalesce($2::text, quota)'
