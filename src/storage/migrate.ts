// Applies the SQL files of `migrations/`, each once, even when several replicas start at the same time.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
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
  return migrationNames(dir).map(name => {
    const content = readFileSync(join(dir, `${name}.sql`))
    return { name, sha256: createHash('sha256').update(content).digest('hex') }
  })
}

function migrationNames(dir: string): string[] {
  const names = readdirSync(dir).map(file => file.replace(/\.sql$/, ''))
  return names.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
}

/**
 * Applies pending migrations under an advisory lock that is waited for, so that any number of replicas may start at
 * once. Each file is a transaction of its own: one that held two tables could deadlock with a statement of a replica
 * that serves. A file that does not get its table at once (a backup reads it, say) is tried again until it does.
 * @returns the names of the files that this call applied, oldest first
 * @throws StorageError when a file fails; those before it stay applied
 */
export async function runMigrations(
  client: MigrationClient,
  log: MigrationLog = () => {},
  dir = MIGRATIONS,
): Promise<string[]> {
  const applied: string[] = []
  const onApplied = (name: string) => {
    applied.push(name)
    log('info', `migration ${name} applied`)
  }
  while ((await applyPending(client, log, onApplied, dir)) === 'locked') {
    log('warn', 'a migration waits for a table that another program has locked')
    await sleep(LOCK_RETRY_MS)
  }
  return applied
}

/**
 * How long a migration waits for a table. Whoever comes after it waits behind it, and a replica of the release before
 * gives up after a second.
 */
const LOCK_TIMEOUT_MS = 300
/** Those who waited behind it are served meanwhile. */
const LOCK_RETRY_MS = 1_000
/** SQLSTATE lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03'

async function applyPending(
  client: MigrationClient,
  log: MigrationLog,
  onApplied: (name: string) => void,
  dir: string,
): Promise<'done' | 'locked'> {
  const warnings: string[] = []
  const note = (line: string) => void warnings.push(line)
  let failure: unknown
  let noted = ''
  const watched: MigrationClient = {
    async query(sql, values) {
      try {
        const result = await client.query(sql, values)
        if (sql === 'BEGIN;') await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
        // The runner notes each file in the list at the end of its transaction.
        noted = NOTES_FILE.exec(sql)?.[1] ?? noted
        if (sql === 'COMMIT;') onApplied(noted)
        return result
      } catch (error) {
        // The runner flattens the driver's error into a text without the SQLSTATE: this keeps the original.
        failure ??= error
        // It leaves the transaction open, in which its lock could not be given back.
        await client.query('rollback').catch(() => {})
        throw error
      }
    },
  }
  try {
    const { schema, names } = await readApplied(watched)
    if (isUpToDate(names, dir)) return 'done'
    // A role may have one of its own, which would end the wait for another replica's migrations.
    await watched.query('set statement_timeout = 0')
    // Loaded on demand: it takes a tenth of a start.
    const { runner } = await import('node-pg-migrate')
    await runner({
      // The runner's type asks for pg's whole client; it calls only this method.
      dbClient: watched as never,
      dir,
      direction: 'up',
      migrationsTable: 'peage_migrations',
      migrationsSchema: schema,
      // It goes by the time in the session's zone, which may have changed since the file before: `isUpToDate` has looked.
      checkOrder: false,
      advisoryLockMode: 'wait',
      singleTransaction: false,
      logger: { info: () => {}, warn: note, error: note },
    })
    for (const line of warnings) log('warn', line)
    return 'done'
  } catch (error) {
    const stored = toStorageError(failure ?? error)
    if (stored.code === LOCK_NOT_AVAILABLE) return 'locked'
    throw stored
  }
}

/** The statement with which the runner notes a file that it has applied. */
const NOTES_FILE = /^INSERT INTO .*peage_migrations" \(name, run_on\) VALUES \('(.+?)'/

interface Applied {
  /** Of the list; where it will be made, if there is none yet. */
  readonly schema: string
  /** In the order in which they were applied. */
  readonly names: readonly string[]
}

/**
 * The list is found by the search_path, as the tables are. Older releases kept it in `public`, wherever the tables
 * were: there it stays. A migration that another replica has not committed yet is not seen; the runner waits for it.
 */
async function readApplied(client: MigrationClient): Promise<Applied> {
  const [found] = (await client.query(findListSql)).rows as { schema: string | null; list: string | null }[]
  if (!found?.schema) throw new Error('no schema of the search_path is there')
  if (found.list === null) return { schema: found.schema, names: [] }
  const { rows } = await client.query(`select name from ${found.list} order by id`)
  return { schema: found.schema, names: (rows as { name: string }[]).map(({ name }) => name) }
}

const findListSql = `
  select coalesce(n.nspname, current_schema()) as schema, found.list::text
    from (select coalesce(
           to_regclass('peage_migrations'),
           case when to_regclass('signing_keys') is not null then to_regclass('public.peage_migrations') end
         ) as list) found
         left join pg_class c on c.oid = found.list left join pg_namespace n on n.oid = c.relnamespace`

/** Whether nothing is left to apply. @throws an error for operators where files were applied in another order */
function isUpToDate(applied: readonly string[], dir: string): boolean {
  const files = migrationNames(dir)
  for (const [i, name] of applied.slice(0, files.length).entries()) {
    if (name !== files[i])
      throw new Error(`migration ${files[i]} is not applied, and precedes ${name}, which is`)
  }
  return applied.length >= files.length
}
