// Stores an alert and its deliveries in one statement (CONTRACT §7).
import { countRows, type Database, type TransactionStep } from '../../storage/database.ts'

interface Alert {
  /** A UUID. */
  id: string
  type: string
  /** The request body, exactly as sent. */
  body: string
}

export interface AlertStore {
  /**
   * Queues a delivery to every active pro user's webhook, or to one user's.
   * @param inTransaction stored with the alert
   * @returns how many; `user_unknown` when no such user exists
   */
  queue(
    alert: Alert,
    userId: number | undefined,
    now: Date,
    inTransaction?: TransactionStep,
  ): Promise<number | 'user_unknown'>
  /**
   * Deletes up to `limit` alerts created before `before` that no delivery refers to.
   * @returns how many were deleted
   */
  prune(before: Date, limit: number): Promise<number>
}

/** Queuing for a hundred thousand users takes about a second. */
const statementTimeoutMs = 10_000

/** Every method throws StorageError when the store fails. */
export function createAlertStore(database: Database): AlertStore {
  return {
    queue: ({ id, type, body }, userId, now, inTransaction) =>
      database.transaction(
        async tx => {
          // Locked first: a deletion that comes meanwhile waits, and then finds the delivery that goes with the user.
          const isKnown =
            userId === undefined ||
            (await tx.query('select from users where id = $1 for key share', [userId])).length > 0
          if (!isKnown) return 'user_unknown'
          const values = [id, type, body, userId ?? null, now]
          const [row] = await tx.query<{ deliveries: number }>(queueSql, values)
          await inTransaction?.(tx)
          return row?.deliveries ?? 0
        },
        { timeoutMs: statementTimeoutMs },
      ),

    // One lookup of the oldest remaining delivery covers all alerts. The hour's margin: ids rise with age only as
    // closely as the replicas' clocks agree.
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
     where u.plan = 'pro' and u.is_active = 1 and ($4::bigint is null or u.id = $4)
  ), queued as (
    insert into webhook_deliveries (alert_id, user_id, receiver, is_to_one, due_at, created_at)
    select $1::uuid, id, receiver, $4::bigint is not null, $5::timestamptz, $5::timestamptz from receiving
    returning 1
  ), stored as (
    insert into alerts (id, type, body, created_at)
    select $1::uuid, $2, $3, $5::timestamptz where exists (select from receiving)
  )
  select count(*) as deliveries from queued`
