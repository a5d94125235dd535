// Lets a test wait until its statements are blocked by a lock in Postgres.
import type { Queryable } from '../../src/storage/database.ts'

/** Resolves when exactly `expected` statements of the database wait for a lock. */
export async function waitingForLocks(database: Queryable, expected = 1): Promise<void> {
  for (;;) {
    const rows = await database.query(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rows.length === expected) return
  }
}
