// The delivery records: attempt outcomes and the delivery log.
import { type AttemptStore, createAttemptStore } from '../../outbox/attempt-store.ts'
import type { Database } from '../../storage/database.ts'
import { createLeaseStore, type LeaseStore } from './lease-store.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'dropped'

/** As returned to operators. */
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
  /** Set while it is pending. */
  next_attempt_at: Date | null
  finished_at: Date | null
}

interface DeliveryFilter {
  userId?: number | undefined
  status?: DeliveryStatus | undefined
  /** Only deliveries older than the one with this id. */
  before?: number | undefined
  limit: number
}

export interface DeliveryStore extends LeaseStore, AttemptStore<'delivered'> {
  /** Newest first. */
  list(filter: DeliveryFilter): Promise<Delivery[]>
  /**
   * Of the oldest `limit` finished deliveries, deletes those created before `before`.
   * @returns how many were deleted
   */
  prune(before: Date, limit: number): Promise<number>
}

/** Every method throws StorageError when the store fails. */
export function createDeliveryStore(database: Database): DeliveryStore {
  return {
    ...createLeaseStore(database),
    ...createAttemptStore<'delivered'>(database, 'webhook_deliveries'),

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

    // Ordered by id, which rises with age: an index on the age would cost one more write per delivery.
    async prune(before, limit) {
      const rows = await database.query(
        `delete from webhook_deliveries where id in (
           select id from webhook_deliveries
            where id = any(array(select id from webhook_deliveries where status <> 'pending' order by id limit $2))
              and created_at < $1
              for update skip locked
         )
         returning id`,
        [before, limit],
      )
      return rows.length
    },
  }
}
