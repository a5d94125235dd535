// The records of users and of their subscriptions.
import { type Database, prepared, type Queryable, type TransactionStep } from '../storage/database.ts'
import type { Plan, User } from './user.ts'

/** The fields that a login needs; no other code reads them. */
interface PasswordRecord {
  id: number
  is_active: 0 | 1
  password_hash: string
  /** Read in the same statement as the hash: a password change also ends sessions opened with the old password. */
  session_epoch: number
}

export interface UserPatch {
  plan?: Plan
  is_active?: 0 | 1
  /** Verified from now on, if it was not; or not any more. */
  email_verified?: boolean
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
  /** Resets the day's usage to zero. @returns whether the user exists */
  resetUsage(id: number): Promise<boolean>
  /** Deletes the user with all dependent records. @returns whether the user existed */
  delete(id: number): Promise<boolean>
}

/** Every method throws StorageError when the store fails. */
export function createUserStore(database: Database): UserStore {
  return {
    // `do nothing` waits for a concurrent registration of the same email, as a unique violation would.
    async create(email, passwordHash) {
      const [row] = await database.query<{ id: number }>(
        `with created as (
           insert into users (email, password_hash) values ($1, $2)
           on conflict (email) do nothing
           returning id, plan
         ), subscribed as (
           insert into subscriptions (user_id, plan) select id, plan from created
         )
         select id from created`,
        [email, passwordHash],
      )
      return row === undefined ? { outcome: 'email_in_use' } : { outcome: 'created', id: row.id }
    },

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

    update(id, patch, inTransaction) {
      if (inTransaction === undefined) return updateUser(database, id, patch)
      return database.transaction(async tx => {
        const user = await updateUser(tx, id, patch)
        if (user !== undefined) await inTransaction(tx)
        return user
      })
    },

    setPassword: (id, passwordHash) =>
      database.transaction(async tx => {
        await tx.query('update users set password_hash = $2 where id = $1', [id, passwordHash])
        return endSessions(tx, id)
      }),

    async resetUsage(id) {
      const rows = await database.query(
        'update users set daily_usage = 0, last_usage_date = null where id = $1 returning id',
        [id],
      )
      return rows.length > 0
    },

    async delete(id) {
      const rows = await database.query('delete from users where id = $1 returning id', [id])
      return rows.length > 0
    },
  }
}

/** The columns of a `User`, for the table alias `u`. */
export const userColumns =
  'u.id, u.email, u.plan, u.is_active, u.daily_usage, u.last_usage_date, u.created_at, u.email_verified_at'

async function updateUser(
  queryable: Queryable,
  id: number,
  { plan, is_active, email_verified }: UserPatch,
): Promise<User | undefined> {
  const [user] = await queryable.query<User>(
    `with changed as (
       update users u
          set plan = coalesce($2::text, u.plan), is_active = coalesce($3::smallint, u.is_active),
              email_verified_at = case $4::boolean
                when true then coalesce(u.email_verified_at, now())
                when false then null
                else u.email_verified_at end
        where u.id = $1
       returning ${userColumns}
     ), subscribed as (
       insert into subscriptions (user_id, plan)
       select id, plan from changed where $2::text is not null
       on conflict (user_id) do update set plan = excluded.plan, updated_at = now()
     )
     select ${userColumns} from changed u`,
    [id, plan ?? null, is_active ?? null, email_verified ?? null],
  )
  return user
}

const FIND_WITH_EPOCH = prepared(`select ${userColumns}, u.session_epoch from users u where u.id = $1`)

/**
 * Ends every session of a user, within the caller's transaction. The raised epoch invalidates them; `revoked` only
 * records it. A record that a rotation has locked is skipped without waiting: its epoch is outdated, and its
 * successor copies that epoch (CONTRACT §3).
 * @returns whether the user exists
 */
export async function endSessions(tx: Queryable, userId: number): Promise<boolean> {
  const users = await tx.query(
    'update users set session_epoch = session_epoch + 1 where id = $1 returning id',
    [userId],
  )
  await tx.query(
    `update refresh_tokens set revoked = 1 where id in (
       select id from refresh_tokens where user_id = $1 and revoked = 0 for update skip locked
     )`,
    [userId],
  )
  return users.length > 0
}
