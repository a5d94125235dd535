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
  /** Writes the record in the transaction of the audited change. */
  inTransaction(record: AuditRecord): TransactionStep
  /** Newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>
}

export function createAuditStore(database: Database): AuditStore {
  return {
    write: record => write(database, record),
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

async function write(queryable: Queryable, record: AuditRecord): Promise<void> {
  const { at, operator, method, route, user_id, changes, status, request_id } = record
  await queryable.query(
    `insert into admin_audit (at, operator, method, route, user_id, changes, status, request_id)
     values ($1, $2, $3, $4, $5, $6::jsonb, $7, $8)`,
    [
      at,
      operator,
      method,
      route,
      user_id,
      changes === null ? null : JSON.stringify(changes),
      status,
      request_id,
    ],
  )
}
