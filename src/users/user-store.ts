// Stores the records of users and their subscriptions.
import { type Database, prepared, type Queryable, type TransactionStep } from '../storage/database.ts'
import type { User } from './user.ts'
import { changesBetween, type RecordUserChanges } from './user-change.ts'
import {
  insertUser,
  isEmailTaken,
  lockUser,
  type UserPatch,
  updateUser,
  userColumns,
} from './user-record-store.ts'

/** The fields that a login and a check of the current password need. */
interface PasswordRecord {
  id: number
  is_active: 0 | 1
  password_hash: string
  /**
   * The epoch is read in the same statement as the hash. So if the password changes during a login, the new session has
   * the old epoch and is not active.
   */
  session_epoch: number
}

/** A user with the session epoch. The records of the user's active sessions have the same epoch. */
export interface UserWithEpoch extends User {
  readonly session_epoch: number
}

export interface UserStore {
  /** Creates the user and the subscription, both with the same plan. If one of them cannot be created, neither is. */
  create(
    email: string,
    passwordHash: string,
    start?: Pick<UserPatch, 'plan' | 'email_verified'>,
    inTransaction?: (tx: Queryable, user: User) => Promise<void>,
  ): Promise<{ outcome: 'created'; id: number; user: User } | { outcome: 'email_in_use' }>
  /** Finds active and inactive users. */
  findPasswordRecord(email: string): Promise<PasswordRecord | undefined>
  /** Finds the hash of an active or inactive user. */
  findPasswordHash(id: number): Promise<string | undefined>
  activeEmailExists(email: string): Promise<boolean>
  /** Finds active and inactive users. */
  findById(id: number): Promise<User | undefined>
  /** Does the same as `findById`, but also returns the session epoch. The cache of users calls this method. */
  findWithEpoch(id: number): Promise<UserWithEpoch | undefined>
  /** Finds active and inactive users, for operators. The email must be normalized. */
  findByEmail(email: string): Promise<User | undefined>
  /**
   * Changes the given fields. A new plan is also stored in the subscription. A new email ends every session.
   * @param inTransaction runs in the same transaction; `before` is the record before the change, and its row is locked
   * @returns undefined if the user does not exist; `email_taken`, with nothing changed, if another user has the email
   */
  update(
    id: number,
    patch: UserPatch,
    inTransaction?: (tx: Queryable, before: User | undefined) => Promise<void>,
  ): Promise<User | 'email_taken' | undefined>
  /** Sets the password and ends every session of the user. @returns whether the user exists */
  setPassword(id: number, passwordHash: string, inTransaction?: TransactionStep): Promise<boolean>
  /**
   * Replaces the hash `checked`, which the current password matched, with the hash `next`. Ends every session.
   * @param inTransaction runs in the same transaction; `epoch` is the epoch of new sessions
   * @returns undefined, with nothing changed, if the stored hash is no longer `checked`, or if the user is inactive or
   *   deleted
   */
  changePassword(
    id: number,
    hash: { checked: string; next: string },
    inTransaction: (tx: Queryable, epoch: number) => Promise<void>,
  ): Promise<User | undefined>
  /**
   * Replaces the hash `checked` with `next`, another hash of the same password. Sessions and codes stay valid, because
   * the password does not change. Nothing is changed if the stored hash is no longer `checked`. Waits while another
   * transaction locks the user.
   * @throws StorageError if the lock lasts longer than the time limit of a statement
   */
  replaceHash(id: number, hash: { checked: string; next: string }): Promise<void>
  /** Resets the user's daily uses to zero. @returns undefined if the user does not exist */
  resetUsage(id: number, inTransaction?: TransactionStep): Promise<User | undefined>
  /**
   * Deletes the user and all dependent records. With `checkedHash`, deletes only an active user whose password has this
   * hash.
   * @returns whether the user was deleted
   */
  delete(id: number, also?: { checkedHash?: string; inTransaction?: TransactionStep }): Promise<boolean>
}

/**
 * Every method throws StorageError when the store fails.
 * @param recordChanges called in the transaction of a change, while the user is locked. So the changes of one user are
 *   recorded in the order of their commits. Without `recordChanges`, most changes are one statement.
 */
export function createUserStore(database: Database, recordChanges?: RecordUserChanges): UserStore {
  function change<T>(work: (queryable: Queryable) => Promise<T>, hasMore: boolean): Promise<T> {
    return recordChanges === undefined && !hasMore ? work(database) : database.transaction(work)
  }

  return {
    create: (email, passwordHash, start, inTransaction) =>
      change(async tx => {
        const user = await insertUser(tx, email, passwordHash, start)
        if (user === undefined) return { outcome: 'email_in_use' }
        await recordChanges?.(tx, [{ type: 'user.created', user }])
        await inTransaction?.(tx, user)
        return { outcome: 'created', id: user.id, user }
      }, inTransaction !== undefined),

    findById: async id =>
      (await database.query<User>(`select ${userColumns} from users u where u.id = $1`, [id]))[0],
    findWithEpoch: async id => (await database.query<UserWithEpoch>(FIND_WITH_EPOCH, [id]))[0],
    findByEmail: async email =>
      (await database.query<User>(`select ${userColumns} from users u where u.email = $1`, [email]))[0],

    async findPasswordRecord(email) {
      const [row] = await database.query<PasswordRecord>(
        'select id, is_active, password_hash, session_epoch from users where email = $1',
        [email],
      )
      return row
    },

    async findPasswordHash(id) {
      const [row] = await database.query<Pick<PasswordRecord, 'password_hash'>>(
        'select password_hash from users where id = $1',
        [id],
      )
      return row?.password_hash
    },

    async activeEmailExists(email) {
      const rows = await database.query('select 1 as found from users where email = $1 and is_active = 1', [
        email,
      ])
      return rows.length > 0
    },

    async update(id, patch, inTransaction) {
      const mayEndSessions = patch.email !== undefined
      try {
        return await change(
          async tx => {
            const isCompared = recordChanges !== undefined || mayEndSessions || inTransaction !== undefined
            const before = isCompared ? await lockUser(tx, id) : undefined
            const user = await updateUser(tx, id, patch)
            if (user === undefined) return undefined
            if (before !== undefined && before.email !== user.email) await endSessions(tx, id)
            const changes = before === undefined ? [] : changesBetween(before, user)
            if (changes.length > 0) await recordChanges?.(tx, changes)
            await inTransaction?.(tx, before)
            return user
          },
          mayEndSessions || inTransaction !== undefined,
        )
      } catch (error) {
        if (mayEndSessions && isEmailTaken(error)) return 'email_taken'
        throw error
      }
    },

    setPassword: (id, passwordHash, inTransaction) =>
      database.transaction(async tx => {
        const [user] = await tx.query<User>(
          `update users u set password_hash = $2 where u.id = $1 returning ${userColumns}`,
          [id, passwordHash],
        )
        if (user === undefined) return false
        await endSessions(tx, id)
        await recordChanges?.(tx, [{ type: 'user.password_changed', user }])
        await inTransaction?.(tx)
        return true
      }),

    changePassword: (id, { checked, next }, inTransaction) =>
      database.transaction(async tx => {
        const [changed] = await tx.query<UserWithEpoch>(
          `update users u set password_hash = $3, session_epoch = u.session_epoch + 1
            where u.id = $1 and u.password_hash = $2 and u.is_active = 1
           returning ${userColumns}, u.session_epoch`,
          [id, checked, next],
        )
        if (changed === undefined) return undefined
        const { session_epoch: epoch, ...user } = changed
        await revokeRefreshTokens(tx, id)
        await inTransaction(tx, epoch)
        await recordChanges?.(tx, [{ type: 'user.password_changed', user }])
        return user
      }),

    async replaceHash(id, { checked, next }) {
      const sql = 'update users set password_hash = $3 where id = $1 and password_hash = $2'
      await database.query(sql, [id, checked, next])
    },

    resetUsage: (id, inTransaction) =>
      change(async tx => {
        const [user] = await tx.query<User>(
          `update users u set daily_usage = 0, last_usage_date = null where u.id = $1 returning ${userColumns}`,
          [id],
        )
        if (user !== undefined) await inTransaction?.(tx)
        return user
      }, inTransaction !== undefined),

    delete: (id, { checkedHash, inTransaction } = {}) =>
      change(async tx => {
        const [user] = await tx.query<User>(
          `delete from users u
            where u.id = $1 and ($2::text is null or (u.password_hash = $2 and u.is_active = 1))
           returning ${userColumns}`,
          [id, checkedHash ?? null],
        )
        if (user === undefined) return false
        await recordChanges?.(tx, [{ type: 'user.deleted', user }])
        await inTransaction?.(tx)
        return true
      }, inTransaction !== undefined),
  }
}

const FIND_WITH_EPOCH = prepared(`select ${userColumns}, u.session_epoch from users u where u.id = $1`)

/** Raises the session epoch, which invalidates every session. @returns whether the user exists */
export async function endSessions(tx: Queryable, userId: number): Promise<boolean> {
  const users = await tx.query(
    'update users set session_epoch = session_epoch + 1 where id = $1 returning id',
    [userId],
  )
  await revokeRefreshTokens(tx, userId)
  return users.length > 0
}

/**
 * Marks as revoked the refresh tokens that the raised epoch invalidated. Skips tokens that a rotation has locked,
 * because the caller must not wait for the rotation. These tokens and their successors have the old epoch, so they are
 * invalid even without the mark.
 */
async function revokeRefreshTokens(tx: Queryable, userId: number): Promise<void> {
  await tx.query(
    `update refresh_tokens set revoked = 1 where id in (
       select id from refresh_tokens where user_id = $1 and revoked = 0 for update skip locked
     )`,
    [userId],
  )
}
