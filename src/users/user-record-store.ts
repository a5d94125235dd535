// Contains the statements that store and change one user's record, with or without a transaction of the caller.
import { type CoalescingQueue, createCoalescingQueue } from '../async/coalescing-queue.ts'
import {
  type Database,
  isStorageError,
  type Queryable,
  StorageError,
  type TransactionStep,
} from '../storage/database.ts'
import type { Plan, User } from './user.ts'

export interface UserPatch {
  plan?: Plan
  is_active?: 0 | 1
  /**
   * If true, the email becomes verified, and the time of an earlier verification stays. If false, the email becomes
   * unverified.
   */
  email_verified?: boolean
  /** The normalized email. A new email is unverified, unless `email_verified` is true. */
  email?: string
}

/** The columns of a `User`, for the table alias `u`. */
export const userColumns =
  'u.id, u.email, u.plan, u.is_active, u.daily_usage, u.last_usage_date, u.created_at, u.email_verified_at'

/**
 * Stores a user and a subscription, both with the same plan. If the same email is being registered at the same time,
 * waits until that registration ends.
 * @param start values that differ from the defaults: plan `free` and an unverified email
 * @returns undefined if the email is in use
 */
export async function insertUser(
  queryable: Queryable,
  email: string,
  passwordHash: string,
  { plan = 'free', email_verified = false }: Pick<UserPatch, 'plan' | 'email_verified'> = {},
): Promise<User | undefined> {
  const [user] = await queryable.query<User>(
    `with created as (
       insert into users (email, password_hash, plan, email_verified_at)
       values ($1, $2, $3, case when $4::boolean then now() end)
       on conflict (email) do nothing
       returning *
     ), subscribed as (
       insert into subscriptions (user_id, plan) select id, plan from created
     )
     select ${userColumns} from created u`,
    [email, passwordHash, plan, email_verified],
  )
  return user
}

/**
 * Locks the user's row until the transaction ends. Logins and token rotations do not wait for this lock, because they
 * lock only the key of the row (`for key share`).
 */
export async function lockUser(tx: Queryable, id: number): Promise<User | undefined> {
  const [user] = await tx.query<User>(
    `select ${userColumns} from users u where u.id = $1 for no key update`,
    [id],
  )
  return user
}

/**
 * Changes the given fields. A new plan is also stored in the subscription.
 * @throws StorageError if another user, active or inactive, has the email; `isEmailTaken` returns true for this error
 */
export async function updateUser(
  queryable: Queryable,
  id: number,
  { plan, is_active, email_verified, email }: UserPatch,
): Promise<User | undefined> {
  const [user] = await queryable.query<User>(
    `with changed as (
       update users u
          set plan = coalesce($2::text, u.plan), is_active = coalesce($3::smallint, u.is_active),
              email = coalesce($5::text, u.email),
              email_verified_at = case
                when not $4::boolean then null
                when $5::text <> u.email then case when $4 then now() end
                when $4 then coalesce(u.email_verified_at, now())
                else u.email_verified_at end
        where u.id = $1
       returning ${userColumns}
     ), subscribed as (
       insert into subscriptions (user_id, plan)
       select id, plan from changed where $2::text is not null
       on conflict (user_id) do update set plan = excluded.plan, updated_at = now()
     )
     select ${userColumns} from changed u`,
    [id, plan ?? null, is_active ?? null, email_verified ?? null, email ?? null],
  )
  return user
}

/**
 * Runs `change`. With `inTransaction`, locks the user first, and runs both functions in one transaction.
 * @returns whether the user exists; without `inTransaction` always true, because the user is not checked
 */
export async function changeOfUser(
  database: Database,
  userId: number,
  inTransaction: TransactionStep | undefined,
  change: (tx: Queryable) => Promise<unknown>,
): Promise<boolean> {
  if (inTransaction === undefined) {
    await change(database)
    return true
  }
  return database.transaction(async tx => {
    if ((await lockUser(tx, userId)) === undefined) return false
    await change(tx)
    await inTransaction(tx)
    return true
  })
}

/** Returns whether a change failed because another account has the email (a unique violation). */
export function isEmailTaken(error: unknown): boolean {
  return error instanceof StorageError && error.code === '23505'
}

/**
 * Creates a queue in which only one call per user waits for the user's row lock, because a waiting call occupies a
 * connection.
 */
export function createUserQueue(): CoalescingQueue<number> {
  return createCoalescingQueue(isStorageError)
}
