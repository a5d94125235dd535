// Stores the outcomes of delivery attempts. Lists and prunes the delivery log.
import type { Plans } from '../../config/plans.ts'
import {
  type AttemptOutcome,
  type AttemptStore,
  createAttemptStore,
  type LogFilter,
} from '../../outbox/attempt-store.ts'
import { countRows, type Database, type TransactionStep } from '../../storage/database.ts'
import { lockUser } from '../../users/user-record-store.ts'
import { removeWebhook } from '../webhook-store.ts'
import { createLeaseStore, type LeasedDelivery, type LeaseStore } from './lease-store.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'dropped'

/** A delivery, as operators see it. */
export interface Delivery {
  id: number
  alert_id: string
  user_id: number
  type: string | null
  status: DeliveryStatus
  attempts: number
  response_status: number | null
  error: string | null
  created_at: Date
  /** Set while the delivery is pending. */
  next_attempt_at: Date | null
  finished_at: Date | null
}

export type RetryOutcome = 'due' | 'over' | 'unknown'

export interface DeliveryStore extends LeaseStore, AttemptStore<'delivered'> {
  /**
   * Records an attempt to which the receiver responded with 410 (Gone), and removes the webhook. If the user has
   * registered the webhook again after the lease, the new registration stays.
   */
  recordLast(delivery: LeasedDelivery, outcome: AttemptOutcome<'delivered'>, now: Date): Promise<void>
  /**
   * Makes a pending or failed delivery due now, for the user's current webhook. A failed delivery gets one more
   * attempt. Changes nothing while an attempt is running, because this attempt already serves as the retry.
   * @param inTransaction returns a step that runs in the same transaction if the outcome is `due`
   * @returns `over` if the delivery was delivered or dropped. Also `over` if the user is not active, has no webhook, or
   *   has a plan without webhooks.
   */
  retryNow(id: number, now: Date, inTransaction: (userId: number) => TransactionStep): Promise<RetryOutcome>
  /** Returns the deliveries, newest first. */
  list(filter: LogFilter<DeliveryStatus>): Promise<Delivery[]>
  /**
   * Examines the oldest `limit` finished deliveries, and deletes those created before `before`.
   * @returns the number of deleted deliveries
   */
  prune(before: Date, limit: number): Promise<number>
}

/**
 * Every method throws StorageError when the store fails.
 * @param plans returns the configured plans
 */
export function createDeliveryStore(
  database: Database,
  plans: () => Pick<Plans, 'names' | 'withWebhook'>,
): DeliveryStore {
  return {
    ...createLeaseStore(database, plans),
    ...createAttemptStore<'delivered'>(database, 'webhook_deliveries'),

    recordLast: (delivery, outcome, now) =>
      database.transaction(async tx => {
        // Locks the user before the delivery. A registration of a webhook locks in the same order, so a deadlock is
        // impossible.
        await lockUser(tx, delivery.user_id)
        await createAttemptStore(tx, 'webhook_deliveries').recordAttempt(delivery, outcome, now)
        await removeWebhook(tx, delivery.user_id, now, delivery.registration)
      }),

    retryNow: (id, now, inTransaction) =>
      database.transaction(async tx => {
        const [row] = await tx.query<{ user_id: number; is_over: boolean }>(retrySql, [
          id,
          now,
          plans().withWebhook,
        ])
        if (row === undefined) return 'unknown'
        if (row.is_over) return 'over'
        await inTransaction(row.user_id)(tx)
        return 'due'
      }),

    list: ({ userId, status, before, limit }) =>
      database.query<Delivery>(
        `select d.id, d.alert_id, d.user_id, a.type, d.status, d.attempts, d.response_status, d.error,
                d.created_at, case when d.status = 'pending' then d.due_at end as next_attempt_at, d.finished_at
           from webhook_deliveries d left join alerts a on a.id = d.alert_id
          where ($1::bigint is null or d.user_id = $1)
            and ($2::text is null or d.status = $2)
            and ($3::bigint is null or d.id < $3)
          order by d.id desc
          limit $4`,
        [userId ?? null, status ?? null, before ?? null, limit],
      ),

    // Finds the oldest deliveries by ID, because an older delivery has a lower ID. An index on `created_at` would cost
    // one more write for each delivery.
    prune: (before, limit) =>
      countRows(
        database,
        `delete from webhook_deliveries where id in (
           select id from webhook_deliveries
            where id = any(array(select id from webhook_deliveries where status <> 'pending' order by id limit $2))
              and created_at < $1
              for update skip locked
         )
         returning id`,
        [before, limit],
      ),
  }
}

const retrySql = `
  with found as (
    select d.id, d.user_id, d.status, w.receiver,
           d.status in ('delivered', 'dropped') or w.user_id is null or u.is_active = 0
             or u.plan <> all($3::text[]) as is_over,
           d.status = 'pending' and d.due_at = d.leased_until and d.due_at > $2::timestamptz as is_under_way
      from webhook_deliveries d left join users u on u.id = d.user_id left join webhooks w on w.user_id = u.id
     where d.id = $1
       for update of d
  ), retried as (
    update webhook_deliveries d
       set status = 'pending', finished_at = null, receiver = f.receiver,
           due_at = case when f.status = 'failed' then $2::timestamptz else least(d.due_at, $2::timestamptz) end,
           retried_at = case when f.status = 'failed' then $2::timestamptz else d.retried_at end
      from found f
     where d.id = f.id and not f.is_over and not f.is_under_way
  )
  select user_id, is_over from found`
