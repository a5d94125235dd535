// The records of users and of their subscriptions.
import { type Database, prepared, type Queryable, type TransactionStep } from '../storage/database.ts'
import type { Plan, User } from './user.ts'
import { changesBetween, type RecordUserChanges } from './user-change.ts'
import { insertUser, lockUser, type UserPatch, updateUser, userColumns } from './user-record-store.ts'

/** The fields that a login needs; no other code reads them. */
interface PasswordRecord {
  id: number
  is_active: 0 | 1
  password_hash: string
  /** Read in the same statement as the hash: a password change also ends sessions opened with the old password. */
  session_epoch: number
}

/** A user, and the epoch that active records of the user's sessions have. */
export interface UserWithEpoch extends User {
  readonly session_epoch: number
}

interface UserPage {
  users: User[]
  /** The `cursor` of the next page. */
  nextCursor: number | null
}

export interface UserStore {
  /** Creates the user and the subscription, both on plan `free`, or neither. */
  create(
    email: string,
    passwordHash: string,
  ): Promise<{ outcome: 'created'; id: number } | { outcome: 'email_in_use' }>
  /** Finds active and inactive users. */
  findPasswordRecord(email: string): Promise<PasswordRecord | undefined>
  activeEmailExists(email: string): Promise<boolean>
  /** For operators, in id order: active and inactive users whose id is above `cursor`. */
  list(filter: {
    email?: string | undefined
    plan?: Plan | undefined
    cursor?: number | undefined
    limit: number
  }): Promise<UserPage>
  /** Active or inactive. */
  findById(id: number): Promise<User | undefined>
  /** As `findById`, for the cache of identities. */
  findWithEpoch(id: number): Promise<UserWithEpoch | undefined>
  /** For operators; active or inactive. The email must be normalised. */
  findByEmail(email: string): Promise<User | undefined>
  /**
   * Changes the given fields, and the plan in the subscription record too.
   * @param inTransaction stored with the change
   * @returns undefined if the user does not exist
   */
  update(id: number, patch: UserPatch, inTransaction?: TransactionStep): Promise<User | undefined>
  /** Also ends every session of the user. @returns whether the user exists */
  setPassword(id: number, passwordHash: string): Promise<boolean>
  /**
   * Replaces the hash that the current password was checked against, and ends every session.
   * @param inTransaction stored with the change; `epoch` is that of sessions from now on
   * @returns undefined, with nothing changed, if the hash is another one by now, or the user inactive or gone
   */
  changePassword(
    id: number,
    hash: { checked: string; next: string },
    inTransaction: (tx: Queryable, epoch: number) => Promise<void>,
  ): Promise<User | undefined>
  /** Resets the day's usage to zero. @returns whether the user exists */
  resetUsage(id: number): Promise<boolean>
  /**
   * Deletes the user with all dependent records.
   * @param checkedHash deletes an active user alone, and only while the password has this hash
   * @returns whether there was such a user
   */
  delete(id: number, checkedHash?: string): Promise<boolean>
}

/**
 * Every method throws StorageError when the store fails.
 * @param recordChanges called in the transaction of a change, with the user locked: the records of one user are in the
 * order of its commits. Where it is absent, a change is one statement.
 */
export function createUserStore(database: Database, recordChanges?: RecordUserChanges): UserStore {
  /** Runs a change in a transaction if something is to be stored with it. */
  function change<T>(
    work: (queryable: Queryable) => Promise<T>,
    inTransaction?: TransactionStep,
  ): Promise<T> {
    return recordChanges === undefined && inTransaction === undefined
      ? work(database)
      : database.transaction(work)
  }

  return {
    create: (email, passwordHash) =>
      change(async tx => {
        const user = await insertUser(tx, email, passwordHash)
        if (user === undefined) return { outcome: 'email_in_use' }
        await recordChanges?.(tx, [{ type: 'user.created', user }])
        return { outcome: 'created', id: user.id }
      }),

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

    async activeEmailExists(email) {
      const rows = await database.query('select 1 as found from users where email = $1 and is_active = 1', [
        email,
      ])
      return rows.length > 0
    },

    async list({ email, plan, cursor, limit }) {
      const users = await database.query<User>(
        `select ${userColumns} from users u
          where u.id > $1
            and ($2::text is null or u.email = $2)
            and ($3::text is null or u.plan = $3)
          order by u.id
          limit $4`,
        [cursor ?? 0, email ?? null, plan ?? null, limit + 1],
      )
      const page = users.slice(0, limit)
      return { users: page, nextCursor: users.length > limit ? (page.at(-1)?.id ?? null) : null }
    },

    update: (id, patch, inTransaction) =>
      change(async tx => {
        const before = recordChanges && (await lockUser(tx, id))
        const user = await updateUser(tx, id, patch)
        if (user === undefined) return undefined
        const changes = before === undefined ? [] : changesBetween(before, user)
        if (changes.length > 0) await recordChanges?.(tx, changes)
        await inTransaction?.(tx)
        return user
      }, inTransaction),

    setPassword: (id, passwordHash) =>
      database.transaction(async tx => {
        const [user] = await tx.query<User>(
          `update users u set password_hash = $2 where u.id = $1 returning ${userColumns}`,
          [id, passwordHash],
        )
        if (user === undefined) return false
        await endSessions(tx, id)
        await recordChanges?.(tx, [{ type: 'user.password_changed', user }])
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

    async resetUsage(id) {
      const rows = await database.query(
        'update users set daily_usage = 0, last_usage_date = null where id = $1 returning id',
        [id],
      )
      return rows.length > 0
    },

    delete: (id, checkedHash) =>
      change(async tx => {
        const [user] = await tx.query<User>(
          `delete from users u
            where u.id = $1 and ($2::text is null or (u.password_hash = $2 and u.is_active = 1))
           returning ${userColumns}`,
          [id, checkedHash ?? null],
        )
        if (user === undefined) return false
        await recordChanges?.(tx, [{ type: 'user.deleted', user }])
        return true
      }),
  }
}

const FIND_WITH_EPOCH = prepared(`select ${userColumns}, u.session_epoch from users u where u.id = $1`)

/**
 * Ends every session of a user, within the caller's transaction: the raised epoch invalidates them.
 * @returns whether the user exists
 */
export async function endSessions(tx: Queryable, userId: number): Promise<boolean> {
  const users = await tx.query(
    'update users set session_epoch = session_epoch + 1 where id = $1 returning id',
    [userId],
  )
  await revokeRefreshTokens(tx, userId)
  return users.length > 0
}

/**
 * Records what the raised epoch did. A record that a rotation has locked is skipped without waiting: its epoch is
 * outdated, and its successor copies that epoch (CONTRACT §3).
 */
async function revokeRefreshTokens(tx: Queryable, userId: number): Promise<void> {
  await tx.query(
    `update refresh_tokens set revoked = 1 where id in (
       select id from refresh_tokens where user_id = $1 and revoked = 0 for update skip locked
     )`,
    [userId],
  )
}
