// Stores the rows that codes and tokens are derived from, together with the mails that contain them.
import { randomUUID } from 'node:crypto'
import type { CodeKind } from '../../mail/mail-kind.ts'
import type { MailQueue } from '../../mail/mail-queue.ts'
import type { Database, Queryable, TransactionStep } from '../../storage/database.ts'

export interface AccountCode {
  /** A UUID. */
  readonly id: string
  readonly user_id: number
  readonly purpose: CodeKind
  /**
   * The user's email when the code was created. If the user's email or session epoch changes, the code becomes invalid.
   */
  readonly email: string
  readonly session_epoch: number
  /** The new email that the user requested. Set only for the purpose `email`. */
  readonly new_email: string | null
  readonly expires_at: Date
}

export interface NewCode {
  readonly purpose: CodeKind
  /** The user's current email. */
  readonly email: string
  /** The id of the user that must have this email. If the id is omitted, any user may have the email. */
  readonly userId?: number
  /** The session epoch that the user must still have. If omitted, it is not checked. */
  readonly sessionEpoch?: number
  readonly newEmail?: string
  readonly ttlMs: number
}

/** The user as read when the request was checked. If one of its values has changed since then, nothing is stored. */
interface Requester {
  readonly id: number
  readonly email: string
}

export interface EmailChangeRequest {
  readonly user: Requester & { readonly sessionEpoch: number }
  /** Normalized. */
  readonly newEmail: string
  /**
   * Whether the current address gets a notice. If an active account already has the new address, this address also gets
   * one.
   */
  readonly notices: boolean
  readonly ttlMs: number
}

/** Each `issue…` method stores the code and its mails in one transaction. It returns whether any mail was stored. */
export interface CodeIssueStore {
  /** @param inTransaction a step to run in the same transaction if a mail was stored */
  issueReset(email: string, ttlMs: number, now: Date, inTransaction?: TransactionStep): Promise<boolean>
  issueVerification(user: Requester, ttlMs: number, now: Date): Promise<boolean>
  /**
   * Invalidates the previous code in every case, even if another account has the new email. Otherwise the user could
   * find out which emails have accounts.
   */
  issueEmailChange(request: EmailChangeRequest, now: Date): Promise<boolean>
  /** Deletes up to `limit` expired codes. @returns the number of deleted codes */
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
 * Stores a code in place of the user's previous code for this purpose. The user is locked before the code, as in a
 * deletion and in `spendCode`. A different order could cause a deadlock.
 * @returns undefined if no active user matches
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

/** The columns of an `AccountCode`, for the table alias `c`. */
export const codeColumns = 'c.id, c.user_id, c.purpose, c.email, c.session_epoch, c.new_email, c.expires_at'

/** The condition that a code `c` belongs to its user `u` and is valid for the user's current state. */
export const isOfUser = `u.id = c.user_id and u.is_active = 1
  and u.email = c.email and u.session_epoch = c.session_epoch`

/**
 * Locks the user. This must come before the code is locked, as in a deletion. A different order could cause a deadlock.
 * @returns whether the user is active and unchanged
 */
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

/** Returns the active or inactive account of another user that has the email. */
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
