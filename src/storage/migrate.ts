// Applies the plain SQL files of `migrations/`, each once, whoever starts first.
import { fileURLToPath } from 'node:url'
import { toStorageError } from './driver-error.ts'

/** Called with one line for each file applied, and for what the runner warns of. */
export type MigrationLog = (level: 'info' | 'warn', line: string) => void

/** A client with the shape that node-pg-migrate asks of pg's. */
export interface MigrationClient {
  query(sql: string, values?: unknown[]): Promise<unknown>
}

/** `migrations/` stands beside both `src/` and `dist/`. */
const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

/**
 * Runs what is new, in one transaction, under an advisory lock that is waited for, so that any number of
 * replicas may start at once. Returns the names of the files applied, oldest first.
 * @throws StorageError where a file fails; nothing is applied then
 */
export async function runMigrations(
  client: MigrationClient,
  log: MigrationLog = () => {},
  dir = MIGRATIONS,
): Promise<string[]> {
  let failure: unknown
  // The runner makes one text of the driver's error and its stack, without the code: what stands here tells more.
  const remembering: MigrationClient = {
    query: (sql, values) =>
      client.query(sql, values).catch(error => {
        failure ??= error
        throw error
      }),
  }
  try {
    // Loaded when it is needed, which a worker never does: with all that it needs it takes a tenth of a start.
    const { runner } = await import('node-pg-migrate')
    const applied = await runner({
      // The runner asks for pg's whole client and uses this one method of it.
      dbClient: remembering as never,
      dir,
      direction: 'up',
      migrationsTable: 'peage_migrations',
      advisoryLockMode: 'wait',
      singleTransaction: true,
      logger: { info: () => {}, warn: line => log('warn', line), error: line => log('warn', line) },
    })
    for (const { name } of applied) log('info', `migration ${name} applied`)
    return applied.map(({ name }) => name)
  } catch (error) {
    throw toStorageError(failure ?? error)
  }
}
