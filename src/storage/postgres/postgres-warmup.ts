// Opens a pool's connections ahead of the requests: opening one can take as long as a request's connection timeout.
import type { Pool } from 'pg'
import { toStorageError } from '../driver-error.ts'
import { type CheckedOutClient, query, withClient } from './postgres-query.ts'

/** No further connection is started after this time. */
const WARMUP_TIMEOUT_MS = 5_000

/** Leaves room for operators and for processes that start later. Every role may read both values. */
const HAS_ROOM = `select sum(numbackends) < 0.75 * current_setting('max_connections')::int as "hasRoom"
                    from pg_stat_database`

export interface WarmupResult {
  /** Connections in the pool now. */
  readonly open: number
  /** Why there are no more; undefined if all are open. */
  readonly reason: string | undefined
}

/**
 * Opens connections one after the other, because a busy server would be late with all of them at once, until three
 * quarters of the server's `max_connections` are in use. The pool's idle timeout closes unused ones. Never rejects;
 * takes 6.5 s at most.
 * @param maxConnections the pool's limit
 */
export async function warmUp(pool: Pool, maxConnections: number): Promise<WarmupResult> {
  const deadline = performance.now() + WARMUP_TIMEOUT_MS
  // Retries a connection that timed out, but a server that is down is not retried without end.
  let tries = 2 * maxConnections
  let lateReason = ''

  /** Holds each connection until the last is open: the pool would otherwise hand out the same one again. */
  async function openNext(): Promise<string | undefined> {
    if (pool.totalCount >= maxConnections) return undefined
    if (performance.now() > deadline) return `not done within ${WARMUP_TIMEOUT_MS / 1_000} s${lateReason}`
    tries -= 1
    try {
      return await withClient(pool, async checkedOut =>
        (await hasRoom(checkedOut)) ? openNext() : 'three quarters of max_connections are in use',
      )
    } catch (error) {
      const { message, code } = toStorageError(error)
      // With a SQLSTATE, the server itself refused.
      if (code !== undefined || tries <= 0) return message
      lateReason = `: ${message}`
      return openNext()
    }
  }

  const reason = await openNext()
  return { open: pool.totalCount, reason }
}

async function hasRoom(checkedOut: CheckedOutClient): Promise<boolean> {
  const { rows } = await query<{ hasRoom: boolean }>(checkedOut, HAS_ROOM)
  return rows[0]?.hasRoom === true
}
