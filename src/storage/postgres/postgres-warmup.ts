// Opens the connections of a pool in advance. Otherwise, the first requests could time out while their connections are
// opened.
import type { Pool } from 'pg'
import { toStorageError } from '../driver-error.ts'
import { type CheckedOutClient, query, withClient } from './postgres-query.ts'

/** After this time, the warm-up opens no further connection. */
const WARMUP_TIMEOUT_MS = 5_000

/**
 * Returns whether the server has room for more connections. A quarter of `max_connections` stays free, for operators
 * and for processes that start later. Every role of the database may read `numbackends` and `max_connections`.
 */
const HAS_ROOM = `select sum(numbackends) < 0.75 * current_setting('max_connections')::int as "hasRoom"
                    from pg_stat_database`

export interface WarmupResult {
  readonly open: number
  /** The reason why some connections are not open; undefined if all connections are open. */
  readonly reason: string | undefined
}

/**
 * Opens connections one after another, because a busy server would be too slow to open all of them at once. Stops when
 * three quarters of the server's `max_connections` are in use. The pool's idle timeout later closes unused connections.
 * Never rejects, and takes less than 7 s.
 * @param maxConnections the pool's limit
 */
export async function warmUp(pool: Pool, maxConnections: number): Promise<WarmupResult> {
  const deadline = performance.now() + WARMUP_TIMEOUT_MS
  // If a connection does not open in time, the next attempt opens another connection. The number of attempts is
  // limited, because the server may be down.
  let tries = 2 * maxConnections
  let lateReason = ''

  /**
   * Opens the next connection. All connections are held until the last one is open. If a connection were released
   * earlier, the pool would return it again instead of opening a new one.
   */
  async function openNext(): Promise<string | undefined> {
    if (pool.totalCount >= maxConnections) return undefined
    if (performance.now() > deadline) return `not finished within ${WARMUP_TIMEOUT_MS / 1_000} s${lateReason}`
    tries -= 1
    try {
      return await withClient(pool, async checkedOut =>
        (await hasRoom(checkedOut)) ? openNext() : 'three quarters of max_connections are in use',
      )
    } catch (error) {
      const { message, code } = toStorageError(error)
      // If the error has a SQLSTATE, the server itself refused the connection.
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
