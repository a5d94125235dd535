// Stores the identities of users: lists identities, and removes them.
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
  /** The email at the provider, when the identity was stored. */
  readonly email: string | null
  readonly created_at: Date
  readonly last_used_at: Date | null
}

export interface IdentityStore {
  /** Returns the identities of an active or inactive user, oldest first. */
  list(userId: number, tx?: Queryable): Promise<Identity[]>
  /**
   * Removes an identity for its owner, unless the account would have no way to sign in without it. Several concurrent
   * removals never leave an account without one.
   * @param request.configured the issuers of the configured providers; other identities are no way to sign in
   * @param check runs after the user is locked, so no session can end during the transaction; if it throws, nothing is
   *   changed
   * @returns `last`, with nothing changed, if the account has no password and no other identity of a configured
   *   provider. `unknown` if the user has no identity of this issuer. `user_gone` if the user was deleted or deactivated
   *   in the meantime.
   */
  removeOwn(
    userId: number,
    request: { readonly issuer: string; readonly configured: readonly string[] },
    check: TransactionStep,
  ): Promise<'removed' | 'unknown' | 'last' | 'user_gone'>
  /**
   * Removes an identity of an active or inactive user for an operator, even if it is the last way to sign in.
   * @param issuer any text
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
  /** The queue of `createUserQueue`, so that each user occupies only one connection of the pool. */
  perUser: CoalescingQueue<number>
  recordChanges: RecordUserChanges
}

/** Every method throws StorageError when the store fails. */
export function createIdentityStore({ database, perUser, recordChanges }: Dependencies): IdentityStore {
  /** Runs `work` with the user locked. The user is locked before the identities, as in a deletion. */
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
 * Looks for an issuer among the identities of a user. The issuers are compared here, because the database refuses some
 * texts, for example with a NUL.
 */
async function findIssuer(tx: Queryable, userId: number, issuer: string) {
  const issuers = (await listIdentities(tx, userId)).map(identity => identity.issuer)
  return { found: issuers.includes(issuer), others: issuers.filter(other => other !== issuer) }
}

/** Reads the hash after the user was locked. So it is the current hash, and no other transaction changes it. */
async function hasPassword(tx: Queryable, userId: number): Promise<boolean> {
  return (
    (await countRows(tx, 'select from users where id = $1 and password_hash <> $2', [userId, noHash])) > 0
  )
}

/** Removes all identities of a user. The user must be locked. @returns the number of removed identities */
export function removeIdentities(tx: Queryable, userId: number): Promise<number> {
  return countRows(tx, 'delete from identities where user_id = $1 returning issuer', [userId])
}
