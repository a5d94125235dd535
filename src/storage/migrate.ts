// Applies the SQL files of `migrations/`, each once, even when several replicas start at the same time.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { toStorageError } from './driver-error.ts'

/** Called with one line per applied file, and for the runner's warnings. */
export type MigrationLog = (level: 'info' | 'warn', line: string) => void

/** The part of pg's client that node-pg-migrate uses. */
interface MigrationClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** `migrations/` is a sibling of both `src/` and `dist/`. */
const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

export interface MigrationFile {
  /** Without `.sql`, as the table of applied migrations has it. */
  readonly name: string
  readonly sha256: string
}

/** In the order in which they are applied. */
export function migrationFiles(dir = MIGRATIONS): MigrationFile[] {
  return readdirSync(dir)
    .sort((a, b) => a.localeCompare(b, undefined, { numeric: true }))
    .map(file => ({
      name: file.replace(/\.sql$/, ''),
      sha256: createHash('sha256')
        .update(readFileSync(join(dir, file)))
        .digest('hex'),
    }))
}

/**
 * Applies pending migrations in one transaction, under an advisory lock that is waited for, so that any number of
 * replicas may start at once.
 * @returns the names of the applied files, oldest first
 * @throws StorageError when a file fails; then none is applied
 */
export async function runMigrations(
  client: MigrationClient,
  log: MigrationLog = () => {},
  dir = MIGRATIONS,
): Promise<string[]> {
  let failure: unknown
  // The runner flattens the driver's error into a text without the SQLSTATE: this keeps the original.
  const remembering: MigrationClient = {
    query: (sql, values) =>
      client.query(sql, values).catch(error => {
        failure ??= error
        throw error
      }),
  }
  try {
    if (await isUpToDate(remembering, dir)) return []
    // Loaded on demand: it takes a tenth of a start.
    const { runner } = await import('node-pg-migrate')
    const applied = await runner({
      // The runner's type asks for pg's whole client; it calls only this method.
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

/**
 * Whether the files are the first of those applied, in their order: then the runner would find nothing to do. A
 * migration that another replica has not committed yet is not seen; the runner then waits for it.
 */
async function isUpToDate(client: MigrationClient, dir: string): Promise<boolean> {
  const { rows: tables } = await client.query(
    "select from pg_tables where schemaname = 'public' and tablename = 'peage_migrations'",
  )
  if (tables.length === 0) return false
  const { rows } = await client.query('select name from public.peage_migrations order by run_on, id')
  return migrationFiles(dir).every(({ name }, i) => (rows[i] as { name: string } | undefined)?.name === name)
}
