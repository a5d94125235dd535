// Opens a pool's connections before anybody waits for one: a new one can take as long as a request has patience.
import type { Pool } from 'pg'
import { toStorageError } from '../driver-error.ts'
import { type CheckedOutClient, query, withClient } from './postgres-transaction.ts'

/** Milliseconds after which no further connection is begun. */
const WARMUP_TIMEOUT_MS = 5_000

/** Others have to come in too: operators, and the processes that start next. Every role may read both. */
const HAS_ROOM = `select sum(numbackends) < 0.75 * current_setting('max_connections')::int as "hasRoom"
                    from pg_stat_database`

export interface WarmupResult {
  /** Connections that the pool has now. */
  readonly open: number
  /** Why there are not more; nothing where all are open. */
  readonly reason: string | undefined
}

/**
 * Opens them one after the other, since a busy server would be late with all of them at once, until three quarters of
 * what it lets in are taken. What nobody uses ends later as it always does. Never rejects, and takes 6.5 s at most.
 * @param max the pool's own
 */
export async function warmUp(pool: Pool, maxConnections: number): Promise<WarmupResult> {
  const deadline = performance.now() + WARMUP_TIMEOUT_MS
  // One that came too late is worth another try; a server that is away is not asked for ever.
  let tries = 2 * maxConnections
  let lateReason = ''

  /** Each is held until the last is there: the pool would lend the same one again. */
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
      // With a code it is the server's own no.
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
