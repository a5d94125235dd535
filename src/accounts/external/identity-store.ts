// Lists the stored identities of users, and removes identities.
import type { CoalescingQueue } from '../../async/coalescing-queue.ts'
import { countRows, type Database, type Queryable, type TransactionStep } from '../../storage/database.ts'
import type { User } from '../../users/user.ts'
import type { RecordUserChanges } from '../../users/user-change.ts'
import { lockUser } from '../../users/user-record-store.ts'
import { noHash } from '../hashes/foreign-hash.ts'

/** The account that a user has with another identity provider. */
export interface Identity {
  readonly issuer: string
  /** The user's id at the provider. It is unique per issuer. */
  readonly sub: string
  /** The email at the provider at the time when the identity was stored. */
  readonly email: string | null
  readonly created_at: Date
  readonly last_used_at: Date | null
}

export interface IdentityStore {
  /** Returns the identities of an active or inactive user, oldest first. */
  list(userId: number, tx?: Queryable): Promise<Identity[]>
  /**
   * Removes an identity for its owner. The last way to sign in to the account is never removed, even by several
   * concurrent removals.
   * @param request.configured the issuers of the configured providers; users cannot sign in with other issuers
   * @param check runs while the user is locked, so that no session can end during the transaction; if it throws,
   *   nothing is changed
   * @returns `last`, with nothing changed, if the account has no password and no other identity of a configured
   *   provider. `unknown` if the user has no identity of this issuer. `user_gone` if the user is deleted or inactive.
   */
  removeOwn(
    userId: number,
    request: { readonly issuer: string; readonly configured: readonly string[] },
    check: TransactionStep,
  ): Promise<'removed' | 'unknown' | 'last' | 'user_gone'>
  /**
   * Removes an identity for an operator, even if the user is inactive or has no other way to sign in.
   * @param issuer the issuer that the operator entered; it can be any text
   * @param inTransaction stores its changes together with the removal
   */
  remove(
    userId: number,
    issuer: string,
    inTransaction: TransactionStep,
  ): Promise<'removed' | 'unknown' | 'user_gone'>
}

interface Dependencies {
  database: Database
  /** The queue of `createUserQueue`. With it, the calls of one user occupy only one connection of the pool. */
  perUser: CoalescingQueue<number>
  recordChanges: RecordUserChanges
}

/** Every method throws StorageError when the store fails. */
export function createIdentityStore({ database, perUser, recordChanges }: Dependencies): IdentityStore {
  /**
   * Runs `work` with the user locked. A deletion also locks the user before the identities, so no deadlock is possible.
   */
  const ofUser = <T>(userId: number, work: (tx: Queryable, user: User) => Promise<T>) =>
    perUser.run(userId, () =>
      database.transaction(async tx => {
        const user = await lockUser(tx, userId)
        return user === undefined ? 'user_gone' : work(tx, user)
      }),
    )

  async function removeOne(tx: Queryable, user: User, issuer: string): Promise<void> {
    await tx.query('delete from identities where user_id = $1 and issuer = $2', [user.id, issuer])
    await recordChanges(tx, [{ type: 'user.identity_removed', user }])
  }

  return {
    list: (userId, tx = database) => listIdentities(tx, userId),

    removeOwn: (userId, { issuer, configured }, check) =>
      ofUser(userId, async (tx, user) => {
        if (user.is_active !== 1) return 'user_gone'
        await check(tx)
        const { found, others } = await findIssuer(tx, userId, issuer)
        if (!found) return 'unknown'
        const isLast = !others.some(other => configured.includes(other)) && !(await hasPassword(tx, userId))
        if (isLast) return 'last'
        await removeOne(tx, user, issuer)
        return 'removed'
      }),

    remove: (userId, issuer, inTransaction) =>
      ofUser(userId, async (tx, user) => {
        if (!(await findIssuer(tx, userId, issuer)).found) return 'unknown'
        await removeOne(tx, user, issuer)
        await inTransaction(tx)
        return 'removed'
      }),
  }
}

function listIdentities(tx: Queryable, userId: number): Promise<Identity[]> {
  return tx.query<Identity>(
    `select issuer, sub, email, created_at, last_used_at from identities
      where user_id = $1 order by created_at, issuer`,
    [userId],
  )
}

/**
 * Looks for an issuer among the identities of a user. The comparison is not done in SQL, because the database refuses
 * some texts, for example a text with a NUL.
 */
async function findIssuer(tx: Queryable, userId: number, issuer: string) {
  const issuers = (await listIdentities(tx, userId)).map(identity => identity.issuer)
  return { found: issuers.includes(issuer), others: issuers.filter(other => other !== issuer) }
}

/** The user must be locked. The hash is then current, and no other transaction can change it. */
async function hasPassword(tx: Queryable, userId: number): Promise<boolean> {
  return (
    (await countRows(tx, 'select from users where id = $1 and password_hash <> $2', [userId, noHash])) > 0
  )
}

/** Removes all identities of a user. The user must be locked. @returns the number of removed identities */
export function removeIdentities(tx: Queryable, userId: number): Promise<number> {
  return countRows(tx, 'delete from identities where user_id = $1 returning issuer', [userId])
}
