// Lets a test wait until its statements are blocked by a lock in Postgres.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../../src/storage/database.ts'
import { type Setup, services } from './setups.ts'

/**
 * Resolves when exactly `expected` statements of the database wait for a lock.
 * @param statement an SQL pattern; other statements are not counted
 */
export async function waitingForLocks(database: Queryable, expected = 1, statement = '%'): Promise<void> {
  for (;;) {
    const rows = await database.query(
      `select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
      [statement],
    )
    if (rows.length === expected) return
  }
}

/**
 * Resolves when a request waits for the row of a user that a transaction of the test has locked.
 * @param database the database of the gateway, outside the transaction
 */
export async function waitingForUser(setup: Setup, database: Queryable): Promise<void> {
  if (setup === services) await waitingForLocks(database, 1, '%for no key update%')
  // On the embedded database, all other statements wait for the transaction, so the wait cannot be observed.
  else await sleep(200)
}
