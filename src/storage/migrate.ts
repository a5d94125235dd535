// Applies each SQL file of `migrations/` once, even if several replicas start at the same time.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { toStorageError } from './driver-error.ts'

/** Called with one line per applied file, and for warnings of the runner. */
export type MigrationLog = (level: 'info' | 'warn', line: string) => void

/** The part of pg's client that node-pg-migrate uses. */
interface MigrationClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** `migrations/` is a sibling of both `src/` and `dist/`. */
const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))

export interface MigrationFile {
  /** The file name without `.sql`, as in the table of applied migrations. */
  readonly name: string
  readonly sha256: string
}

/** Returns the files in the order in which they are applied. */
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
 * Applies pending migrations. Waits for an advisory lock, so any number of replicas may start together. Each file is
 * applied in its own transaction, because a transaction that locks two tables could deadlock with a statement of an
 * active replica. If a table cannot be locked in time, for example during a backup, its file is tried again until the
 * lock succeeds.
 * @returns the names of the files that this call applied, oldest first
 * @throws StorageError when a file fails; the files before it stay applied
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
    log('warn', 'migration waits for a table that another program has locked')
    await sleep(LOCK_RETRY_MS)
  }
  return applied
}

/**
 * How long a migration waits for the lock of a table. During this time, later statements on this table wait too. A
 * replica of the previous release cancels its statements after one second, so this time must be shorter.
 */
const LOCK_TIMEOUT_MS = 300
/** The pause before the next try. During this pause, the statements that waited behind the migration are executed. */
const LOCK_RETRY_MS = 1_000
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
        // At the end of each transaction, the runner inserts the name of the file into the table of applied migrations.
        noted = NOTES_FILE.exec(sql)?.[1] ?? noted
        if (sql === 'COMMIT;') onApplied(noted)
        return result
      } catch (error) {
        // The runner reduces the driver's error to a text without the SQLSTATE, so the original error is kept here.
        failure ??= error
        // The runner leaves the failed transaction open. In this transaction, every further statement fails, so the
        // runner could not release its advisory lock.
        await client.query('rollback').catch(() => {})
        throw error
      }
    },
  }
  try {
    const { schema, names } = await readApplied(watched)
    if (isUpToDate(names, dir)) return 'done'
    // The role may have a statement timeout, which would end the wait for another replica's migrations.
    await watched.query('set statement_timeout = 0')
    // The runner is loaded on demand, because it takes a tenth of the start time.
    const { runner } = await import('node-pg-migrate')
    await runner({
      // The runner's type requires pg's whole client, but the runner calls only the method `query`.
      dbClient: watched as never,
      dir,
      direction: 'up',
      migrationsTable: 'peage_migrations',
      migrationsSchema: schema,
      // The order check of node-pg-migrate compares times in the time zone of the session. A migration file may change
      // this time zone. The check is not needed, because `isUpToDate` has already checked the order of the files.
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

/** The statement with which the runner stores the name of an applied file. */
const NOTES_FILE = /^INSERT INTO .*peage_migrations" \(name, run_on\) VALUES \('(.+?)'/

interface Applied {
  /** The schema of the table of applied migrations, or the schema in which it will be created. */
  readonly schema: string
  /** The names in the order in which the files were applied. */
  readonly names: readonly string[]
}

/**
 * Reads the names of the applied migrations. Postgres finds the table of applied migrations by the search_path, like
 * all tables. Older releases always created this table in `public`, and it stays there. A migration that another
 * replica has applied but not committed is not visible here. The runner later waits for that replica.
 */
async function readApplied(client: MigrationClient): Promise<Applied> {
  const [found] = (await client.query(findListSql)).rows as { schema: string | null; list: string | null }[]
  if (!found?.schema) throw new Error('none of the schemas in search_path exists')
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

/**
 * Returns whether no migration is pending.
 * @throws Error, with a message for operators, if the files were applied in another order
 */
function isUpToDate(applied: readonly string[], dir: string): boolean {
  const files = migrationNames(dir)
  for (const [i, name] of applied.slice(0, files.length).entries()) {
    if (name !== files[i])
      throw new Error(`migration ${name} is applied, but the earlier migration ${files[i]} is not`)
  }
  return applied.length >= files.length
}
