// The two set-ups that a gateway is promised to work in alike: alone, and on Postgres and Redis.
import { createMigratedDatabase, dropPostgresDatabase } from './databases.ts'
import { embedded, type Stores } from './gateway.ts'
import { areServicesThere, describeAlone, describeWithServices, emptyRedisUrl } from './services.ts'

export interface Setup {
  open(): Promise<Stores>
  /** Call it when the gateways on it have stopped. */
  drop(stores: Stores): Promise<void>
}

/**
 * Runs one suite on Postgres and Redis, or alone where they are not there: test/contracts holds that the stores are
 * alike. A full matrix has both.
 */
export function describeOverSetups(title: string, suite: (setup: Setup) => void): void {
  describeAlone(`${title} (alone)`, () => suite(alone))
  describeWithServices(`${title} (on Postgres and Redis)`, () => suite(services))
}

/** The embedded database, and no Redis. */
export const alone: Setup = { open: async () => embedded, drop: async () => {} }

/** Postgres with a migrated database of the suite's own, and Redis. */
export const services: Setup = {
  open: async () => ({ postgres: await createMigratedDatabase(), redis: await emptyRedisUrl() }),
  drop: ({ postgres }) => dropPostgresDatabase(postgres),
}

/** Where either will do: to start a program on the embedded database takes twice the CPU. */
export function eitherSetup(): Setup {
  return areServicesThere() ? services : alone
}
