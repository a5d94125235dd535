// Stores the audit log: changes by operators and refused calls.
import type { Database, Queryable, TransactionStep } from '../storage/database.ts'

/** How an operator made a call: in the console, with a token on the admin API, or with `peage users`. */
export const auditChannels = ['console', 'api', 'cli'] as const
export type AuditChannel = (typeof auditChannels)[number]

export interface AuditRecord {
  at: Date
  /** The name of the operator's token. */
  operator: string
  channel: AuditChannel
  method: string
  /** The path pattern. */
  route: string
  user_id: number | null
  /** The changed fields with their new values. Null if the request was refused. */
  changes: Readonly<Record<string, unknown>> | null
  /** The values of the changed fields before the change, without secrets. Null if no such value is recorded. */
  previous: Readonly<Record<string, unknown>> | null
  status: number
  request_id: string
}

interface AuditEntry extends Omit<AuditRecord, 'channel'> {
  id: number
  /** How the operator made the call. Null if the entry is from an old version that did not record the channel. */
  channel: AuditChannel | null
  /**
   * The user's current email, read from the user's record. The audit log itself contains no email of the user. Null if
   * the user was deleted.
   */
  email: string | null
}

interface AuditFilter {
  userId?: number | undefined
  operator?: string | undefined
  /** Selects entries from this time on. */
  from?: Date | undefined
  /** Selects entries before this time. */
  until?: Date | undefined
  action?: Pick<AuditRecord, 'method' | 'route'> | undefined
  /** Selects entries that are older than the entry with this id. */
  before?: number | undefined
  limit: number
}

/** Every method throws StorageError when the store fails. */
export interface AuditStore {
  write(record: AuditRecord): Promise<void>
  /** Records a refusal, at most once per minute for the same operator, method and route. */
  writeRefusal(record: AuditRecord): Promise<void>
  inTransaction(record: AuditRecord): TransactionStep
  /** Like `inTransaction`, but the step writes the record once for each of these users. */
  forUsers(record: Omit<AuditRecord, 'user_id'>, userIds: readonly number[]): TransactionStep
  /** Returns entries, newest first. */
  list(filter: AuditFilter): Promise<AuditEntry[]>
}

export function createAuditStore(database: Database): AuditStore {
  return {
    write: record => write(database, record, [record.user_id]),
    writeRefusal: record =>
      write(database, record, [record.user_id], new Date(Math.floor(record.at.getTime() / 60_000) * 60_000)),
    inTransaction: record => tx => write(tx, record, [record.user_id]),
    forUsers: (record, userIds) => tx => write(tx, record, userIds),
    list: ({ userId, operator, from, until, action, before, limit }) =>
      database.query<AuditEntry>(
        `select a.id, a.at, a.operator, a.channel, a.method, a.route, a.user_id, u.email, a.changes, a.previous,
                a.status, a.request_id
           from admin_audit a left join users u on u.id = a.user_id
          where ($1::bigint is null or a.user_id = $1)
            and ($2::text is null or a.operator = $2)
            and ($3::bigint is null or a.id < $3)
            and ($5::timestamptz is null or a.at >= $5)
            and ($6::timestamptz is null or a.at < $6)
            and ($7::text is null or (a.method = $7 and a.route = $8::text))
          order by a.id desc
          limit $4`,
        [
          userId ?? null,
          operator ?? null,
          before ?? null,
          limit,
          from ?? null,
          until ?? null,
          action?.method ?? null,
          action?.route ?? null,
        ],
      ),
  }
}

/**
 * Writes a record for each user.
 * @param userIds the users, one record for each; an id of null writes a record without a user
 * @param refusedIn the start of the minute in which the call was refused; null if the record is not a refusal
 */
async function write(
  queryable: Queryable,
  record: Omit<AuditRecord, 'user_id'>,
  userIds: readonly (number | null)[],
  refusedIn: Date | null = null,
): Promise<void> {
  const { at, operator, channel, method, route, changes, previous, status, request_id } = record
  await queryable.query(
    `insert into admin_audit (at, operator, method, route, user_id, changes, status, request_id, refused_in, channel,
       previous)
     select $1::timestamptz, $2::text, $3::text, $4::text, user_id, $6::jsonb, $7::smallint, $8::text,
            $9::timestamptz, $10::text, $11::jsonb
       from unnest($5::bigint[]) as of_users (user_id)
     on conflict (operator, method, route, refused_in) where refused_in is not null do nothing`,
    [
      at,
      operator,
      method,
      route,
      userIds,
      changes === null ? null : JSON.stringify(changes),
      status,
      request_id,
      refusedIn,
      channel,
      previous === null ? null : JSON.stringify(previous),
    ],
  )
}
