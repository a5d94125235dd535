// The records of users and of their subscriptions.

import { type Database, prepared, type Queryable, type TransactionStep } from '../storage/database.ts'
import { endSessions } from './session-epoch-store.ts'
import type { Plan, User } from './user.ts'

/** What a login needs, and nothing else of the program sees. */
export interface PasswordRecord {
  id: number
  is_active: 0 | 1
  password_hash: string
  /** Read in the same statement as the hash: a session opened with it dies with the password that it proves. */
  session_epoch: number
}

export interface UserPatch {
  plan?: Plan
  is_active?: 0 | 1
}

export interface UserPage {
  users: User[]
  /** The `cursor` of the page after this one. */
  nextCursor: number | null
}

export interface UserStore {
  /** Creates the user and its subscription, both of plan `free`, or nothing at all. */
  create(
    email: string,
    passwordHash: string,
  ): Promise<{ outcome: 'created'; id: number } | { outcome: 'email_in_use' }>
  /** Of an active user or not. */
  findPasswordRecord(email: string): Promise<PasswordRecord | undefined>
  activeEmailExists(email: string): Promise<boolean>
  /** For operators, in the order of ids: active users or not, those whose id is above `cursor`. */
  list(filter: {
    email?: string | undefined
    plan?: Plan | undefined
    cursor?: number | undefined
    limit: number
  }): Promise<UserPage>
  /** Active or not. */
  findById(id: number): Promise<User | undefined>
  /** For operators: active or not. The email is a normalised one. */
  findByEmail(email: string): Promise<User | undefined>
  /**
   * Changes what is given, the plan in the subscription record too. Nothing where there is no such user.
   * @param alongside stored with the change
   */
  update(id: number, patch: UserPatch, inTransaction?: TransactionStep): Promise<User | undefined>
  /** Also ends every session of the user. Whether there is such a user. */
  setPassword(id: number, passwordHash: string): Promise<boolean>
  /** Gives back the day's uses. Whether there is such a user. */
  resetUsage(id: number): Promise<boolean>
  /** With everything that belongs to the user. Whether there was such a user. */
  delete(id: number): Promise<boolean>
}

/** Every method throws StorageError where the store fails. */
export function createUserStore(database: Database): UserStore {
  return {
    // "Do nothing" waits for a registration of the same email that is under way, as an error would.
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

    findById: async id => (await database.query<User>(FIND_BY_ID, [id]))[0],
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

/** The columns of `users` that make a `User`, where the table is `u`. */
const userColumns = 'u.id, u.email, u.plan, u.is_active, u.daily_usage, u.last_usage_date, u.created_at'

async function updateUser(
  queryable: Queryable,
  id: number,
  { plan, is_active }: UserPatch,
): Promise<User | undefined> {
  const [user] = await queryable.query<User>(
    `with changed as (
       update users u
          set plan = coalesce($2::text, u.plan), is_active = coalesce($3::smallint, u.is_active)
        where u.id = $1
       returning ${userColumns}
     ), subscribed as (
       insert into subscriptions (user_id, plan)
       select id, plan from changed where $2::text is not null
       on conflict (user_id) do update set plan = excluded.plan, updated_at = now()
     )
     select ${userColumns} from changed u`,
    [id, plan ?? null, is_active ?? null],
  )
  return user
}

const FIND_BY_ID = prepared(`select ${userColumns} from users u where u.id = $1`)
