// Requests for codes: the code and the mails that tell of it are stored in one transaction, or neither is.
import type { AccountCode, CodeStore } from '../mail/codes/code-store.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import type { Database, Queryable, TransactionStep } from '../storage/database.ts'

/** The user as the request found them: if they are another by now, nothing is stored. */
interface Requester {
  readonly id: number
  readonly email: string
}

export interface EmailChangeRequest {
  readonly user: Requester & { readonly sessionEpoch: number }
  /** Normalised. */
  readonly newEmail: string
  /** Also tells the address of now, and the owner of one that is taken. */
  readonly notices: boolean
  readonly ttlMs: number
}

/** Each tells whether any mail was stored. */
export interface CodeRequestStore {
  /** @param inTransaction stored with the mail */
  requestReset(email: string, ttlMs: number, now: Date, inTransaction?: TransactionStep): Promise<boolean>
  requestVerification(user: Requester, ttlMs: number, now: Date): Promise<boolean>
  /** Voids the request before also where the new email is taken: nobody can tell by it which emails are. */
  requestEmailChange(request: EmailChangeRequest, now: Date): Promise<boolean>
}

interface Dependencies {
  database: Database
  codes: Pick<CodeStore, 'make' | 'void'>
  mails: Pick<MailQueue, 'add'>
}

/** Every method throws StorageError when the store fails. */
export function createCodeRequestStore({ database, codes, mails }: Dependencies): CodeRequestStore {
  async function send(tx: Queryable, code: AccountCode | undefined): Promise<boolean> {
    if (code === undefined) return false
    const { purpose, user_id: userId, new_email, email, id: codeId, expires_at: expiresAt } = code
    await mails.add(tx, { kind: purpose, userId, address: new_email ?? email, codeId, expiresAt })
    return true
  }

  return {
    requestReset: (email, ttlMs, now, inTransaction) =>
      database.transaction(async tx => {
        const isSent = await send(tx, await codes.make(tx, { purpose: 'reset', email, ttlMs }, now))
        if (isSent) await inTransaction?.(tx)
        return isSent
      }),

    requestVerification: ({ id, email }, ttlMs, now) =>
      database.transaction(async tx =>
        send(tx, await codes.make(tx, { purpose: 'verify', userId: id, email, ttlMs }, now)),
      ),

    requestEmailChange: ({ user, newEmail, notices, ttlMs }, now) =>
      database.transaction(async tx => {
        const { id: userId, email, sessionEpoch } = user
        if (!(await lockUser(tx, user))) return false
        const owner = await findOther(tx, newEmail, userId)
        if (owner === undefined)
          await send(
            tx,
            await codes.make(tx, { purpose: 'email', userId, email, sessionEpoch, newEmail, ttlMs }, now),
          )
        else await codes.void(tx, userId, 'email')
        if (owner?.is_active === 1 && notices)
          await mails.add(tx, { kind: 'email_taken', userId: owner.id, address: newEmail })
        if (notices) await mails.add(tx, { kind: 'email_change_requested', userId, address: email })
        return true
      }),
  }
}

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

/** Whoever else has the email, active or not. */
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
