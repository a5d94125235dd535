// Stores the rows from which codes and tokens are derived, together with the mails that contain the codes and tokens.
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
  /** The id of the user who must have this email. If omitted, the code is for the user who has the email. */
  readonly userId?: number
  /** The session epoch that the user must still have. If omitted, the session epoch is not checked. */
  readonly sessionEpoch?: number
  readonly newEmail?: string
  readonly ttlMs: number
}

/** The user at the time when the request was checked. If a value has changed since then, nothing is stored. */
interface Requester {
  readonly id: number
  readonly email: string
}

export interface EmailChangeRequest {
  readonly user: Requester & { readonly sessionEpoch: number }
  /** Normalized. */
  readonly newEmail: string
  /**
   * Whether to send notices. The current address always gets a notice. The new address gets a notice only if another
   * active account already has it.
   */
  readonly notices: boolean
  readonly ttlMs: number
}

/**
 * Each `issue…` method stores the code and its mails in one transaction. It returns whether an active user matches the
 * arguments. If no user matches, nothing is stored.
 */
export interface CodeIssueStore {
  /** @param inTransaction a step that runs in the same transaction, but only if a code was stored */
  issueReset(email: string, ttlMs: number, now: Date, inTransaction?: TransactionStep): Promise<boolean>
  issueVerification(user: Requester, ttlMs: number, now: Date): Promise<boolean>
  /**
   * Always invalidates the previous code. If another account has the new email, no new code is stored. If the previous
   * code stayed valid in this case, the user would learn that this account exists.
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
 * Stores a code, which replaces the user's previous code for this purpose. The row of the user is locked before the row
 * of the code. The deletion of a user and `spendCode` lock in the same order, so that no deadlock occurs.
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

/**
 * The SQL condition that joins a code `c` with its user `u`. The user must be active, and have the same email and
 * session epoch as when the code was created.
 */
export const isOfUser = `u.id = c.user_id and u.is_active = 1
  and u.email = c.email and u.session_epoch = c.session_epoch`

/**
 * Locks the row of the user. Call it before the row of the code is locked. The deletion of a user locks in the same
 * order, so that no deadlock occurs.
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

/** Returns the other user, active or inactive, who has the email. Undefined if there is none. */
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
