// Stores the result of each attempt to send a row of an outbox: sent, failed permanently, or to be retried.
import type { Queryable } from '../storage/database.ts'

/** A row that this process may attempt until its lease expires. */
export interface Lease {
  id: number
  /** The number of this attempt, starting at 1. This number and the ID together identify the lease. */
  attempts: number
}

/**
 * How an attempt ended. `Done` is the status for a row that was sent, for example `delivered`. `retryAt` is set if
 * another attempt follows.
 */
export interface AttemptOutcome<Done extends string> {
  responseStatus: number | null
  /** One line for operators, without secrets. */
  error: string | null
  result: Done | 'failed' | { retryAt: Date }
}

export interface AttemptStore<Done extends string> {
  /**
   * Stores the outcome of an attempt. Changes nothing if the row is already finished, or if the lease has expired and
   * another replica has leased the row.
   */
  recordAttempt(lease: Lease, outcome: AttemptOutcome<Done>, now: Date): Promise<void>
  /** Releases a row whose attempt sent nothing, as if it had never been leased. */
  release(lease: Lease, now: Date): Promise<void>
}

export interface LogFilter<Status extends string> {
  userId?: number | undefined
  status?: Status | undefined
  /** Selects only rows older than the row with this ID. */
  before?: number | undefined
  limit: number
}

/**
 * Every method throws StorageError when the store fails.
 * @param table the name of the table. It has the columns `id`, `status`, `attempts`, `due_at`, `response_status`,
 *   `error` and `finished_at`. The status is 'pending' until the row is finished. Each lease increases `attempts`.
 *   `due_at` is the time of the next attempt, or the end of the lease.
 */
export function createAttemptStore<Done extends string>(
  database: Queryable,
  table: 'webhook_deliveries' | 'events' | 'mails',
): AttemptStore<Done> {
  return {
    async recordAttempt({ id, attempts }, { responseStatus, error, result }, now) {
      const retryAt = typeof result === 'object' ? result.retryAt : null
      await database.query(
        `update ${table}
            set status = $3, response_status = $4, error = $5, due_at = coalesce($6::timestamptz, due_at),
                finished_at = case when $6::timestamptz is null then $7::timestamptz end
          where id = $1 and attempts = $2 and status = 'pending'`,
        [id, attempts, typeof result === 'object' ? 'pending' : result, responseStatus, error, retryAt, now],
      )
    },

    async release({ id, attempts }, now) {
      await database.query(
        `update ${table} set attempts = attempts - 1, due_at = $3::timestamptz
          where id = $1 and attempts = $2 and status = 'pending'`,
        [id, attempts, now],
      )
    },
  }
}
