// Counts the tries to enter a code, and spends codes. A code allows one change of the account. The change and the
// deletion of the spent code are one transaction.
import type { CodeKind } from '../../mail/mail-kind.ts'
import type { Database, Queryable } from '../../storage/database.ts'
import type { User } from '../../users/user.ts'
import { changesBetween, type RecordUserChanges } from '../../users/user-change.ts'
import { isEmailTaken, updateUser, userColumns } from '../../users/user-record-store.ts'
import { endSessions } from '../../users/user-store.ts'
import { endOtherSessions } from '../session-store.ts'
import { type AccountCode, codeColumns, findLiveCode, isOfUser } from './code-issue-store.ts'

export type CodeOwner = { readonly email: string } | { readonly userId: number }

/**
 * The session from which the user confirms a change of email. All other sessions end. With `none`, all sessions end.
 */
export type CurrentSession = { readonly id: string } | 'none'

export interface CodeRedemptionStore {
  /**
   * Counts a try. Call it before the code is compared.
   * @returns undefined if there is no valid code, or if all five tries are used
   */
  countTry(owner: CodeOwner, purpose: CodeKind, now: Date): Promise<AccountCode | undefined>
  /** Takes back a counted try. Call it if the code was correct, because only wrong guesses count. */
  uncountTry(id: string): Promise<void>
  /** Finds the code with this id, if it is still valid. */
  findLive(id: string, now: Date): Promise<AccountCode | undefined>
  /**
   * Sets the password, ends every session, and marks the email as verified. If the email was not verified before, the
   * API keys are revoked, and the webhook and the identities are removed. Someone other than the owner of the email may
   * have created them.
   * @returns the changed user. If the code is no longer valid, nothing is changed and the result is undefined. This
   *   also applies to `verifyEmail` and `changeEmail`.
   */
  resetPassword(code: AccountCode, passwordHash: string, now: Date): Promise<User | undefined>
  verifyEmail(code: AccountCode, now: Date): Promise<User | undefined>
  /**
   * Changes the email, marks it as verified, and ends all sessions except `current`. If the new email equals the
   * current email, the email is only marked as verified.
   */
  changeEmail(
    code: AccountCode,
    current: CurrentSession,
    now: Date,
  ): Promise<User | 'email_taken' | undefined>
}

interface Dependencies {
  database: Database
  /** Revokes the API keys of a user, and removes the webhook and the identities. */
  forgetIntegrations(tx: Queryable, user: User, now: Date): Promise<void>
  recordChanges: RecordUserChanges
}

/** The number of wrong tries after which a code is invalid. The token in the same mail stays valid. */
const maxTries = 5

/** Every method throws StorageError when the store fails. */
export function createCodeRedemptionStore({
  database,
  forgetIntegrations,
  recordChanges,
}: Dependencies): CodeRedemptionStore {
  /**
   * Spends the code and changes the user. Then compares the user before and after, and records the differences.
   * @param recorded additional changes to record, which this comparison cannot find
   */
  function spendFor(
    code: AccountCode,
    now: Date,
    change: (tx: Queryable, before: User) => Promise<User>,
    recorded: 'user.password_changed'[] = [],
  ): Promise<User | undefined> {
    return database.transaction(async tx => {
      const before = await spendCode(tx, code, now)
      if (before === undefined) return undefined
      const user = await change(tx, before)
      const changes = [...recorded.map(type => ({ type, user })), ...changesBetween(before, user)]
      if (changes.length > 0) await recordChanges(tx, changes)
      return user
    })
  }

  const verify = async (tx: Queryable, before: User): Promise<User> =>
    (await updateUser(tx, before.id, { email_verified: true })) ?? before

  return {
    async countTry(owner, purpose, now) {
      const [who, value] = 'email' in owner ? ['u.email', owner.email] : ['u.id', owner.userId]
      const [tried] = await database.query<AccountCode>(
        `update account_codes c set tries = c.tries + 1
           from users u
          where ${who} = $1 and ${isOfUser} and c.purpose = $2 and c.expires_at > $3 and c.tries < ${maxTries}
         returning ${codeColumns}`,
        [value, purpose, now],
      )
      return tried
    },

    async uncountTry(id) {
      await database.query('update account_codes set tries = tries - 1 where id = $1 and tries > 0', [id])
    },

    findLive: (id, now) => findLiveCode(database, id, now),

    resetPassword: (code, passwordHash, now) =>
      spendFor(
        code,
        now,
        async (tx, before) => {
          await tx.query('update users set password_hash = $2 where id = $1', [before.id, passwordHash])
          await endSessions(tx, before.id)
          if (before.email_verified_at === null) await forgetIntegrations(tx, before, now)
          return verify(tx, before)
        },
        ['user.password_changed'],
      ),

    verifyEmail: (code, now) => spendFor(code, now, verify),

    async changeEmail(code, current, now) {
      try {
        return await spendFor(code, now, async (tx, before) => {
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

/**
 * Spends a code by deleting its row. If several transactions spend the same code at once, only one of them succeeds.
 * The row of the user stays locked until the transaction ends.
 * @returns the user before any change; undefined if the code is no longer valid
 */
export async function spendCode(tx: Queryable, code: AccountCode, now: Date): Promise<User | undefined> {
  const [user] = await tx.query<User>(
    `select ${userColumns} from users u
      where u.id = $1 and u.is_active = 1 and u.email = $2 and u.session_epoch = $3 for update`,
    [code.user_id, code.email, code.session_epoch],
  )
  if (user === undefined) return undefined
  const spent = await tx.query('delete from account_codes where id = $1 and expires_at > $2 returning id', [
    code.id,
    now,
  ])
  return spent.length === 1 ? user : undefined
}
