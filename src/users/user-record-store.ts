// The statements that store and change one user's record, each alone or in the caller's transaction.
import type { Queryable } from '../storage/database.ts'
import type { Plan, User } from './user.ts'

export interface UserPatch {
  plan?: Plan
  is_active?: 0 | 1
  /** Verified from now on, if it was not; or not any more. */
  email_verified?: boolean
}

/** The columns of a `User`, for the table alias `u`. */
export const userColumns =
  'u.id, u.email, u.plan, u.is_active, u.daily_usage, u.last_usage_date, u.created_at, u.email_verified_at'

/**
 * Stores a user and the subscription, both on plan `free`. Waits for a concurrent registration of the same email, as a
 * unique violation would.
 * @returns undefined if the email is in use
 */
export async function insertUser(
  queryable: Queryable,
  email: string,
  passwordHash: string,
): Promise<User | undefined> {
  const [user] = await queryable.query<User>(
    `with created as (
       insert into users (email, password_hash) values ($1, $2)
       on conflict (email) do nothing
       returning *
     ), subscribed as (
       insert into subscriptions (user_id, plan) select id, plan from created
     )
     select ${userColumns} from created u`,
    [email, passwordHash],
  )
  return user
}

/** The record as it is until the transaction ends. Does not wait for logins and rotations, which only share the key. */
export async function lockUser(tx: Queryable, id: number): Promise<User | undefined> {
  const [user] = await tx.query<User>(
    `select ${userColumns} from users u where u.id = $1 for no key update`,
    [id],
  )
  return user
}

/**
 * Changes the given fields, and the plan in the subscription record too.
 * @returns undefined if the user does not exist
 */
export async function updateUser(
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
