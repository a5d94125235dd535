// The record of what operators changed, or were refused (CONTRACT §7, our addition).
import type { Database, Queryable, TransactionStep } from '../storage/database.ts'

export interface AuditRecord {
  at: Date
  /** The name of the token. */
  operator: string
  method: string
  /** The pattern of the path. */
  route: string
  user_id: number | null
  /** The fields that were to be changed, and what to; nothing where the request was refused. */
  changes: Readonly<Record<string, unknown>> | null
  /** Of the answer. */
  status: number
  request_id: string
}

/** As operators see it. */
export interface AuditEntry extends AuditRecord {
  id: number
}

export interface AuditFilter {
  userId?: number | undefined
  operator?: string | undefined
  /** Only what is older than the entry with this id. */
  before?: number | undefined
  limit: number
}

/** Every method throws StorageError where the store fails. */
export interface AuditStore {
  write(record: AuditRecord): Promise<void>
  /** The same in the transaction of what was done. */
  inTransaction(record: AuditRecord): TransactionStep
  /** The newest first. */
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
