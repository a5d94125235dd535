// Stores pending mails, which a worker leases to send them, and the log of finished mails.
import { type AttemptStore, createAttemptStore, type Lease, type LogFilter } from '../outbox/attempt-store.ts'
import { countRows, type Database, type Queryable } from '../storage/database.ts'
import type { MailKind } from './mail-kind.ts'

export type MailStatus = 'pending' | 'sent' | 'failed'

interface NewRow {
  readonly userId: number
  readonly kind: MailKind
  readonly address: string
  readonly codeId: string | null
  readonly expiresAt: Date
  readonly now: Date
}

/** Stores a mail that is due immediately. @throws StorageError */
export async function insertMail(
  tx: Queryable,
  { userId, kind, address, codeId, expiresAt, now }: NewRow,
): Promise<void> {
  await tx.query(
    `insert into mails (user_id, kind, address, code_id, due_at, expires_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $5)`,
    [userId, kind, address, codeId, now, expiresAt],
  )
}

/** A mail that this process may send until its lease expires. */
export interface LeasedMail extends Lease {
  user_id: number
  kind: MailKind
  address: string
  code_id: string | null
  /** After this time, the mail is not attempted again. */
  expires_at: Date
  created_at: Date
}

/** A mail, as operators see it. */
export interface Mail {
  id: number
  user_id: number
  kind: MailKind
  address: string
  status: MailStatus
  attempts: number
  created_at: Date
  /** The time when the next attempt is due. `null` if the mail is not pending. */
  due_at: Date | null
  sent_at: Date | null
}

export interface MailStore extends AttemptStore<'sent'> {
  /**
   * Leases due mails. Mails that have been due for the longest time come first. Concurrent callers get different mails.
   */
  lease(request: { limit: number; now: Date; leaseUntil: Date }): Promise<LeasedMail[]>
  /** Returns the mails, newest first. */
  list(filter: LogFilter<MailStatus>): Promise<Mail[]>
  /**
   * Examines the oldest `limit` mails, and deletes those that were created before `before`. Returns the number of
   * deleted mails.
   */
  prune(before: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createMailStore(database: Database): MailStore {
  return {
    ...createAttemptStore<'sent'>(database, 'mails'),

    lease: ({ limit, now, leaseUntil }) =>
      database.query<LeasedMail>(
        `with due as (
           select id from mails where status = 'pending' and due_at <= $1::timestamptz
            order by due_at, id limit $2 for update skip locked
         )
         update mails m set attempts = m.attempts + 1, due_at = $3::timestamptz
           from due where m.id = due.id
         returning m.id, m.user_id, m.kind, m.address, m.code_id, m.attempts, m.expires_at, m.created_at`,
        [now, limit, leaseUntil],
      ),

    list: ({ userId, status, before, limit }) =>
      database.query<Mail>(
        `select id, user_id, kind, address, status, attempts, created_at,
                case when status = 'pending' then due_at end as due_at,
                case when status = 'sent' then finished_at end as sent_at
           from mails
          where ($1::bigint is null or user_id = $1)
            and ($2::text is null or status = $2)
            and ($3::bigint is null or id < $3)
          order by id desc
          limit $4`,
        [userId ?? null, status ?? null, before ?? null, limit],
      ),

    // Older mails have lower IDs, so the oldest mails are found by ID. An index on `created_at` would cost one more
    // write per mail.
    prune: (before, limit) =>
      countRows(
        database,
        `delete from mails where id in (
           select id from mails
            where id = any(array(select id from mails order by id limit $2)) and created_at < $1
              for update skip locked
         )
         returning id`,
        [before, limit],
      ),
  }
}
