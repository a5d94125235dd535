// The rows that the codes and tokens of mails are derived from, stored together with the mails that carry them.
import { randomUUID } from 'node:crypto'
import type { CodeKind } from '../../mail/mail-kind.ts'
import type { MailQueue } from '../../mail/mail-queue.ts'
import type { Database, Queryable, TransactionStep } from '../../storage/database.ts'

export interface AccountCode {
  /** A UUID. */
  readonly id: string
  readonly user_id: number
  readonly purpose: CodeKind
  /** The user's email when the code was made. Under any other email or session epoch, the code is void. */
  readonly email: string
  readonly session_epoch: number
  /** The future email of the user; only for the purpose `email`. */
  readonly new_email: string | null
  readonly expires_at: Date
}

export interface NewCode {
  readonly purpose: CodeKind
  /** The user's. */
  readonly email: string
  /** The user that must have this email; omitted: any user. */
  readonly userId?: number
  /** The session epoch that the user must still have; omitted: any. */
  readonly sessionEpoch?: number
  readonly newEmail?: string
  readonly ttlMs: number
}

/** The user as the request found them. If they have changed since, nothing is stored. */
interface Requester {
  readonly id: number
  readonly email: string
}

export interface EmailChangeRequest {
  readonly user: Requester & { readonly sessionEpoch: number }
  /** Normalised. */
  readonly newEmail: string
  /** Whether the present address gets a notice, and also the owner of an address that is taken. */
  readonly notices: boolean
  readonly ttlMs: number
}

/** The code and its mails are stored in one transaction. Each `issue…` returns whether any mail was stored. */
export interface CodeIssueStore {
  /** @param inTransaction runs in the same transaction if a mail was stored */
  issueReset(email: string, ttlMs: number, now: Date, inTransaction?: TransactionStep): Promise<boolean>
  issueVerification(user: Requester, ttlMs: number, now: Date): Promise<boolean>
  /** Voids the previous code even if the new email is taken: otherwise the user could find out which emails are. */
  issueEmailChange(request: EmailChangeRequest, now: Date): Promise<boolean>
  /** Deletes up to `limit` expired codes. @returns how many were deleted */
  prune(now: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createCodeIssueStore(database: Database, mails: Pick<MailQueue, 'add'>): CodeIssueStore {
  async function issue(tx: Queryable, newCode: NewCode, now: Date): Promise<boolean> {
    const code = await insertCode(tx, newCode, now)
    if (code === undefined) return false
    const { purpose, user_id: userId, new_email, email, id: codeId, expires_at: expiresAt } = code
    await mails.add(tx, { kind: purpose, userId, address: new_email ?? email, codeId, expiresAt })
    return true
  }

  return {
    issueReset: (email, ttlMs, now, inTransaction) =>
      database.transaction(async tx => {
        const isStored = await issue(tx, { purpose: 'reset', email, ttlMs }, now)
        if (isStored) await inTransaction?.(tx)
        return isStored
      }),

    issueVerification: ({ id: userId, email }, ttlMs, now) =>
      database.transaction(tx => issue(tx, { purpose: 'verify', userId, email, ttlMs }, now)),

    issueEmailChange: ({ user, newEmail, notices, ttlMs }, now) =>
      database.transaction(async tx => {
        const { id: userId, email, sessionEpoch } = user
        if (!(await lockUser(tx, user))) return false
        const owner = await findOther(tx, newEmail, userId)
        if (owner === undefined)
          await issue(tx, { purpose: 'email', userId, email, sessionEpoch, newEmail, ttlMs }, now)
        else await tx.query("delete from account_codes where user_id = $1 and purpose = 'email'", [userId])
        if (owner?.is_active === 1 && notices)
          await mails.add(tx, { kind: 'email_taken', userId: owner.id, address: newEmail })
        if (notices) await mails.add(tx, { kind: 'email_change_requested', userId, address: email })
        return true
      }),

    async prune(now, limit) {
      const rows = await database.query(
        `delete from account_codes where id = any(array(
           select id from account_codes where expires_at <= $1 order by expires_at limit $2
              for update skip locked
         ))
         returning id`,
        [now, limit],
      )
      return rows.length
    },
  }
}

/**
 * Stores a code instead of the user's previous one of this purpose. The user is locked first, as a deletion and
 * `spendCode` do: the three cannot deadlock.
 * @returns undefined if no active user is as described
 */
export async function insertCode(
  tx: Queryable,
  { purpose, email, userId, sessionEpoch, newEmail, ttlMs }: NewCode,
  now: Date,
): Promise<AccountCode | undefined> {
  const expiresAt = new Date(now.getTime() + ttlMs)
  const [made] = await tx.query<AccountCode>(
    `with owner as (
       select id, email, session_epoch from users
        where email = $1 and is_active = 1
          and ($2::bigint is null or id = $2) and ($3::integer is null or session_epoch = $3)
          for key share
     )
     insert into account_codes as c
       (id, user_id, purpose, email, session_epoch, new_email, created_at, expires_at)
     select $4::uuid, id, $5, email, session_epoch, $6, $7::timestamptz, $8::timestamptz from owner
     on conflict (user_id, purpose) do update
        set id = excluded.id, email = excluded.email, session_epoch = excluded.session_epoch,
            new_email = excluded.new_email, tries = 0, created_at = excluded.created_at,
            expires_at = excluded.expires_at
     returning ${codeColumns}`,
    [email, userId ?? null, sessionEpoch ?? null, randomUUID(), purpose, newEmail ?? null, now, expiresAt],
  )
  return made
}

/** The code of this id, if it is live. */
export async function findLiveCode(
  database: Queryable,
  id: string,
  now: Date,
): Promise<AccountCode | undefined> {
  const [found] = await database.query<AccountCode>(
    `select ${codeColumns} from account_codes c join users u on ${isOfUser}
      where c.id = $1 and c.expires_at > $2`,
    [id, now],
  )
  return found
}

/** Of an `AccountCode`, for the table alias `c`. */
export const codeColumns = 'c.id, c.user_id, c.purpose, c.email, c.session_epoch, c.new_email, c.expires_at'

/** For a code `c` and its user `u`. */
export const isOfUser = `u.id = c.user_id and u.is_active = 1
  and u.email = c.email and u.session_epoch = c.session_epoch`

/** First, as a deletion does: the two cannot deadlock. @returns whether the user is active and as said */
async function lockUser(
  tx: Queryable,
  { id, email, sessionEpoch }: EmailChangeRequest['user'],
): Promise<boolean> {
  const rows = await tx.query(
    'select from users where id = $1 and email = $2 and session_epoch = $3 and is_active = 1 for key share',
    [id, email, sessionEpoch],
  )
  return rows.length === 1
}

/** Returns the other account that has the email, active or not. */
async function findOther(
  tx: Queryable,
  email: string,
  userId: number,
): Promise<{ id: number; is_active: 0 | 1 } | undefined> {
  const [other] = await tx.query<{ id: number; is_active: 0 | 1 }>(
    'select id, is_active from users where email = $1 and id <> $2',
    [email, userId],
  )
  return other
}
