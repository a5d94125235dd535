// Stores the webhooks, with at most one per user.
import type { CoalescingQueue } from '../async/coalescing-queue.ts'
import { countRows, type Database, type Queryable, type TransactionStep } from '../storage/database.ts'
import { changeOfUser, lockUser } from '../users/user-record-store.ts'

interface NewWebhook {
  /** The URL as the user wrote it. */
  url: string
  /** `host:port`. */
  receiver: string
  /** The secret as stored, which is encrypted if `auth.key_secret` is set. */
  secret: string
}

export interface WebhookStore {
  /**
   * Creates or replaces the user's webhook, and keeps the pending deliveries. If the URL is unchanged, deliveries are
   * also signed with the previous secret for 24 hours.
   * @param precondition a function that runs after the user is locked; if it throws, nothing changes
   * @returns the time when the webhook was registered; `user_gone` if no active user has this ID
   */
  put(
    userId: number,
    webhook: NewWebhook,
    now: Date,
    precondition?: TransactionStep,
  ): Promise<Date | 'user_gone'>
  /**
   * Removes the user's webhook, and drops its pending deliveries.
   * @returns whether the user exists; without `inTransaction` always true, because the user is not checked
   */
  remove(userId: number, now: Date, inTransaction?: TransactionStep): Promise<boolean>
  /** Clears up to `limit` previous secrets that have expired at `now`. @returns how many were cleared */
  forgetExpiredSecrets(now: Date, limit: number): Promise<number>
}

/**
 * Every method throws StorageError when the store fails.
 * @param perUser a queue that lets only one call per user wait for the lock of the user's row, because each waiting
 *   call uses a connection
 */
export function createWebhookStore(database: Database, perUser: CoalescingQueue<number>): WebhookStore {
  return {
    put: (userId, webhook, now, precondition) =>
      perUser.run(userId, () =>
        database.transaction(tx => putWebhook(tx, userId, webhook, now, precondition)),
      ),

    remove: (userId, now, inTransaction) =>
      perUser.run(userId, () =>
        changeOfUser(database, userId, inTransaction, tx => removeWebhook(tx, userId, now)),
      ),

    forgetExpiredSecrets: (now, limit) =>
      countRows(
        database,
        `update webhooks set secret_before = null, secret_before_until = null
          where user_id = any(array(
            select user_id from webhooks where secret_before_until <= $1
             order by secret_before_until limit $2 for update skip locked
          ))
         returning user_id`,
        [now, limit],
      ),
  }
}

async function putWebhook(
  tx: Queryable,
  userId: number,
  { url, receiver, secret }: NewWebhook,
  now: Date,
  precondition: TransactionStep | undefined,
): Promise<Date | 'user_gone'> {
  if ((await lockUser(tx, userId))?.is_active !== 1) return 'user_gone'
  await precondition?.(tx)
  const [row] = await tx.query<{ created_at: Date }>(
    `with stored as (
       insert into webhooks (user_id, url, receiver, secret, created_at)
       values ($1, $2, $3, $4, $5::timestamptz)
       on conflict (user_id) do update
          set registration = default, url = excluded.url, receiver = excluded.receiver,
              secret = excluded.secret, created_at = excluded.created_at,
              secret_before = case when webhooks.url = excluded.url then webhooks.secret end,
              secret_before_until =
                case when webhooks.url = excluded.url then excluded.created_at + interval '24 hours' end
       returning user_id, receiver, created_at
     ), moved as (
       update webhook_deliveries d set receiver = s.receiver
         from stored s
        where d.user_id = s.user_id and d.status = 'pending' and d.receiver <> s.receiver
     )
     select created_at from stored`,
    [userId, url, receiver, secret, now],
  )
  return (row as { created_at: Date }).created_at
}

/**
 * Removes the user's webhook, and drops its pending deliveries.
 * @param registration the registration to remove; a newer registration of the user stays
 */
export async function removeWebhook(
  queryable: Queryable,
  userId: number,
  now: Date,
  registration?: number,
): Promise<void> {
  await queryable.query(removeSql, [userId, registration ?? null, now])
}

const removeSql = `
  with removed as (
    delete from webhooks where user_id = $1 and ($2::bigint is null or registration = $2) returning user_id
  )
  update webhook_deliveries d
     set status = 'dropped', finished_at = $3::timestamptz
    from removed r
   where d.user_id = r.user_id and d.status = 'pending'`
