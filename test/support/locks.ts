// Lets a test wait until its statements are blocked by a lock in Postgres.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from '../../src/storage/database.ts'
import { type Setup, services } from './setups.ts'

/**
 * Returns a row for each statement of the database that waits for a lock.
 * @param database not a transaction, because the statistics do not change inside a transaction
 * @param statement a LIKE pattern; only statements that match the pattern are returned
 */
export function statementsWaiting(database: Queryable, statement = '%'): Promise<object[]> {
  return database.query(
    `select pid from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like $1`,
    [statement],
  )
}

/** Resolves when exactly `expected` statements of the database wait for a lock. */
export async function waitingForLocks(database: Queryable, expected = 1, statement = '%'): Promise<void> {
  while ((await statementsWaiting(database, statement)).length !== expected);
}

/**
 * Resolves when a request waits for the row of a user. A transaction of the test must have locked the row before.
 * @param database the database of the gateway, not the transaction
 */
export async function waitingForUser(setup: Setup, database: Queryable): Promise<void> {
  if (setup === services) await waitingForLocks(database, 1, '%for no key update%')
  // On the embedded database, all other statements wait for the transaction. So no statement can observe the wait.
  else await sleep(200)
}
