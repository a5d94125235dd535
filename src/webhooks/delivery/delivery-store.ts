// The delivery records: attempt outcomes and the delivery log.
import type { Database } from '../../storage/database.ts'
import { createLeaseStore, type LeasedDelivery, type LeaseStore } from './lease-store.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'failed' | 'dropped'

/** The outcome of an attempt; `retryAt` if another is to follow. */
export interface AttemptOutcome {
  responseStatus: number | null
  error: string | null
  result: 'delivered' | 'failed' | { retryAt: Date }
}

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

export interface DeliveryStore extends LeaseStore {
  /** Changes nothing if the lease has expired and another replica has it, or if the delivery was dropped. */
  recordAttempt(
    leased: Pick<LeasedDelivery, 'id' | 'attempts'>,
    outcome: AttemptOutcome,
    now: Date,
  ): Promise<void>
  /** Returns an unsent delivery, as if it had never been leased. */
  release(leased: Pick<LeasedDelivery, 'id' | 'attempts'>, now: Date): Promise<void>
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

    async recordAttempt({ id, attempts }, { responseStatus, error, result }, now) {
      const retryAt = typeof result === 'object' ? result.retryAt : null
      await database.query(
        `update webhook_deliveries
            set status = $3, response_status = $4, error = $5, due_at = coalesce($6::timestamptz, due_at),
                finished_at = case when $6::timestamptz is null then $7::timestamptz end
          where id = $1 and attempts = $2 and status = 'pending'`,
        [id, attempts, typeof result === 'object' ? 'pending' : result, responseStatus, error, retryAt, now],
      )
    },

    async release({ id, attempts }, now) {
      await database.query(
        `update webhook_deliveries set attempts = attempts - 1, due_at = $3::timestamptz
          where id = $1 and attempts = $2 and status = 'pending'`,
        [id, attempts, now],
      )
    },

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
