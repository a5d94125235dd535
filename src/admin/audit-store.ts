// The audit log of what operators changed or were refused (CONTRACT §7, our addition).
import type { Database, Queryable, TransactionStep } from '../storage/database.ts'

export interface AuditRecord {
  at: Date
  /** The name of the operator's token. */
  operator: string
  method: string
  /** The path pattern. */
  route: string
  user_id: number | null
  /** The fields to change with their new values; null when the request was refused. */
  changes: Readonly<Record<string, unknown>> | null
  /** Status of the response. */
  status: number
  request_id: string
}

/** As returned to operators. */
interface AuditEntry extends AuditRecord {
  id: number
}

interface AuditFilter {
  userId?: number | undefined
  operator?: string | undefined
  /** Only entries older than the one with this id. */
  before?: number | undefined
  limit: number
}

/** Every method throws StorageError when the store fails. */
export interface AuditStore {
  write(record: AuditRecord): Promise<void>
  /** Writes the record unless one of the same operator, route and minute is there (CONTRACT §13). */
  writeRefusal(record: AuditRecord): Promise<void>
  /** Writes the record in the transaction of the audited change. */
  inTransaction(record: AuditRecord): TransactionStep
  /** Newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>
}

export function createAuditStore(database: Database): AuditStore {
  return {
    write: record => write(database, record),
    writeRefusal: record =>
      write(database, record, new Date(Math.floor(record.at.getTime() / 60_000) * 60_000)),
    inTransaction: record => tx => write(tx, record),
    list: ({ userId, operator, before, limit }) =>
      database.query<AuditEntry>(
        `select id, at, operator, method, route, user_id, changes, status, request_id
           from admin_audit
          where ($1::bigint is null or user_id = $1)
            and ($2::text is null or operator = $2)
            and ($3::bigint is null or id < $3)
          order by id desc
          limit $4`,
        [userId ?? null, operator ?? null, before ?? null, limit],
      ),
  }
}

/** @param refusedIn the minute of a refusal */
async function write(
  queryable: Queryable,
  record: AuditRecord,
  refusedIn: Date | null = null,
): Promise<void> {
  const { at, operator, method, route, user_id, changes, status, request_id } = record
  await queryable.query(
    `insert into admin_audit (at, operator, method, route, user_id, changes, status, request_id, refused_in)
     values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9)
     on conflict (operator, method, route, refused_in) where refused_in is not null do nothing`,
    [
      at,
      operator,
      method,
      route,
      user_id,
      changes === null ? null : JSON.stringify(changes),
      status,
      request_id,
      refusedIn,
    ],
  )
}
