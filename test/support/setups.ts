// The two set-ups in which a gateway must work the same way: the embedded database, and Postgres with Redis.
import { describe } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createMigratedDatabase, dropPostgresDatabase, postgresDatabase } from './databases.ts'
import type { Stores } from './gateway.ts'
import { lendDatabase } from './lent-database.ts'
import { areServicesThere, describeWithServices, emptyRedisUrl, isFullMatrix } from './services.ts'

export interface Setup {
  /** Opens a migrated database for a test without a gateway. The test must close it. */
  openDatabase(): Promise<Database>
  /** Opens new databases for a gateway. */
  open(): Promise<Stores>
  /** Drops the databases. All gateways that use them must have stopped. */
  drop(stores: Stores): Promise<void>
}

/** Runs a suite on one set-up; in a full matrix, on both. `test/contracts` checks that both set-ups behave the same. */
export function describeOverSetups(title: string, suite: (setup: Setup) => void): void {
  if (isFullMatrix) describeOnBothSetups(title, suite)
  else describe(title, () => suite(eitherSetup()))
}

/** Runs a suite on both set-ups, even without a full matrix. */
export function describeOnBothSetups(title: string, suite: (setup: Setup) => void): void {
  describe(`${title} (embedded)`, () => suite(embeddedSetup))
  describeWithServices(`${title} (on Postgres and Redis)`, () => suite(services))
}

/** The embedded database without Redis. */
export const embeddedSetup: Setup = {
  openDatabase: lendDatabase,
  open: async () => ({ postgres: '', redis: '' }),
  drop: async () => {},
}

/** Postgres with a new migrated database, and Redis. */
export const services: Setup = {
  openDatabase: postgresDatabase,
  open: async () => ({ postgres: await createMigratedDatabase(), redis: await emptyRedisUrl() }),
  drop: ({ postgres }) => dropPostgresDatabase(postgres),
}

/**
 * Returns a set-up for tests that need only one. If possible, the set-up is Postgres with Redis. It takes half the CPU
 * time of the embedded database.
 */
export function eitherSetup(): Setup {
  return areServicesThere() ? services : embeddedSetup
}
