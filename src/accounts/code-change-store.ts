// What a code is spent for, each in the transaction that spends it: both are done, or neither.
import type { AccountCode, CodeStore } from '../mail/codes/code-store.ts'
import type { Database, Queryable } from '../storage/database.ts'
import type { User } from '../users/user.ts'
import { changesBetween, type RecordUserChanges } from '../users/user-change.ts'
import { isEmailTaken, updateUser } from '../users/user-record-store.ts'
import { endSessions } from '../users/user-store.ts'
import { endOtherSessions } from './session-store.ts'

/** The session that a change of email is confirmed in, which alone goes on. */
export type CurrentSession = { readonly id: string } | 'none'

/** Each resolves to undefined, and changes nothing, if the code is not live any more. */
export interface CodeChangeStore {
  /**
   * Sets the password, ends every session, and takes the email for verified: where it was not before, API token and
   * webhook go, because nobody knows who made them.
   */
  resetPassword(code: AccountCode, passwordHash: string, now: Date): Promise<User | undefined>
  verifyEmail(code: AccountCode, now: Date): Promise<User | undefined>
  /** Changes the email to the code's, verified, and ends sessions; the same as before is only verified. */
  changeEmail(
    code: AccountCode,
    current: CurrentSession,
    now: Date,
  ): Promise<User | 'email_taken' | undefined>
}

interface Dependencies {
  database: Database
  codes: Pick<CodeStore, 'spend'>
  /** Ends the API token and the webhook of a user. */
  forgetIntegrations(tx: Queryable, userId: number, now: Date): Promise<void>
  recordChanges: RecordUserChanges
}

/** Every method throws StorageError when the store fails. */
export function createCodeChangeStore({
  database,
  codes,
  forgetIntegrations,
  recordChanges,
}: Dependencies): CodeChangeStore {
  /**
   * @param change returns the record as it is then
   * @param told besides what differs between the records
   */
  function spend(
    code: AccountCode,
    now: Date,
    change: (tx: Queryable, before: User) => Promise<User>,
    told: 'user.password_changed'[] = [],
  ): Promise<User | undefined> {
    return database.transaction(async tx => {
      const before = await codes.spend(tx, code, now)
      if (before === undefined) return undefined
      const user = await change(tx, before)
      const changes = [...told.map(type => ({ type, user })), ...changesBetween(before, user)]
      if (changes.length > 0) await recordChanges(tx, changes)
      return user
    })
  }

  const verify = async (tx: Queryable, before: User): Promise<User> =>
    (await updateUser(tx, before.id, { email_verified: true })) ?? before

  return {
    resetPassword: (code, passwordHash, now) =>
      spend(
        code,
        now,
        async (tx, before) => {
          await tx.query('update users set password_hash = $2 where id = $1', [before.id, passwordHash])
          await endSessions(tx, before.id)
          if (before.email_verified_at === null) await forgetIntegrations(tx, before.id, now)
          return verify(tx, before)
        },
        ['user.password_changed'],
      ),

    verifyEmail: (code, now) => spend(code, now, verify),

    async changeEmail(code, current, now) {
      try {
        return await spend(code, now, async (tx, before) => {
          const patch = { email: code.new_email as string, email_verified: true }
          const user = (await updateUser(tx, before.id, patch)) ?? before
          if (user.email === before.email) return user
          if (current === 'none') await endSessions(tx, before.id)
          else await endOtherSessions(tx, before.id, current.id, now)
          return user
        })
      } catch (error) {
        if (isEmailTaken(error)) return 'email_taken'
        throw error
      }
    },
  }
}
