// Stores an alert and its deliveries in one statement.
import type { Plans } from '../../config/plans.ts'
import { countRows, type Database, type TransactionStep } from '../../storage/database.ts'

interface Alert {
  id: string
  type: string
  /** The request body, exactly as it is sent. */
  body: string
}

export interface AlertStore {
  /**
   * Queues a delivery to the webhook of every active user whose plan has webhooks. With `userId`, only this user can
   * get a delivery.
   * @param inTransaction runs in the same transaction as the statement that stores the alert
   * @returns the number of deliveries; `user_unknown` if the user does not exist
   */
  queue(
    alert: Alert,
    userId: number | undefined,
    now: Date,
    inTransaction?: TransactionStep,
  ): Promise<number | 'user_unknown'>
  /**
   * Deletes up to `limit` alerts that were created before `before` and have no deliveries left.
   * @returns how many were deleted
   */
  prune(before: Date, limit: number): Promise<number>
}

/**
 * The time limit of a statement. It is longer than usual, because queuing an alert for 100,000 users takes about 1 s.
 */
const statementTimeoutMs = 10_000

/**
 * Every method throws StorageError when the store fails.
 * @param plans returns the configured plans
 */
export function createAlertStore(database: Database, plans: () => Pick<Plans, 'withWebhook'>): AlertStore {
  return {
    queue: ({ id, type, body }, userId, now, inTransaction) =>
      database.transaction(
        async tx => {
          // Locks the user first. A concurrent deletion of the user waits for this lock, and then also deletes the
          // delivery.
          const isKnown =
            userId === undefined ||
            (await tx.query('select from users where id = $1 for key share', [userId])).length > 0
          if (!isKnown) return 'user_unknown'
          const values = [id, type, body, userId ?? null, now, plans().withWebhook]
          const [row] = await tx.query<{ deliveries: number }>(queueSql, values)
          await inTransaction?.(tx)
          return row?.deliveries ?? 0
        },
        { timeoutMs: statementTimeoutMs },
      ),

    // Looks up the oldest remaining delivery once, and not the deliveries of each alert. If the clocks of replicas
    // differ, the delivery with the lowest ID is not always the oldest. So there is a margin of one hour.
    prune: (before, limit) =>
      countRows(
        database,
        `delete from alerts where id = any(array(
           select id from alerts
            where created_at < $1
              and created_at < coalesce(
                (select created_at - interval '1 hour' from webhook_deliveries order by id limit 1), 'infinity'
              )
            order by created_at limit $2 for update skip locked
         ))
         returning id`,
        [before, limit],
      ),
  }
}

const queueSql = `
  with receiving as (
    select u.id, w.receiver from users u join webhooks w on w.user_id = u.id
     where u.plan = any($6::text[]) and u.is_active = 1 and ($4::bigint is null or u.id = $4)
  ), queued as (
    insert into webhook_deliveries (alert_id, user_id, receiver, is_to_one, due_at, created_at)
    select $1::uuid, id, receiver, $4::bigint is not null, $5::timestamptz, $5::timestamptz from receiving
    returning 1
  ), stored as (
    insert into alerts (id, type, body, created_at)
    select $1::uuid, $2, $3, $5::timestamptz where exists (select from receiving)
  )
  select count(*) as deliveries from queued`
