// Lets several tests use the same embedded database, one after the other. Opening a database takes 0.5 s of CPU time.
// Emptying a used database takes only a few milliseconds.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import type { Notifications } from '../../src/storage/change-feed.ts'
import { toStorageError } from '../../src/storage/driver-error.ts'
import type { EmbeddedDatabase } from '../../src/storage/pglite/pglite.ts'
import { openEmbedded } from './open-embedded.ts'

interface LendableDatabase {
  readonly database: EmbeddedDatabase
  /**
   * A digest of the tables, functions and triggers of the database. If a test changed them, the database is not lent
   * again.
   */
  readonly schema: string
}

const idle: LendableDatabase[] = []
/** The maximum number of idle databases. Each uses about 150 MB of memory. Tests rarely need more than two at once. */
const maxIdle = 2

/** Lends a migrated, empty database in memory. `close` returns it to the idle databases. */
export async function lendDatabase(): Promise<EmbeddedDatabase> {
  return lent(idle.pop() ?? (await open()))
}

async function open(): Promise<LendableDatabase> {
  snapshot ??= migratedSnapshot()
  const database = await openEmbedded({ snapshot: await snapshot })
  return { database, schema: await schemaOf(database) }
}

/**
 * Wraps a database until the test closes it. After `close`, the wrapper behaves like a closed database. The database
 * itself may stay open for the next test.
 */
function lent(lendable: LendableDatabase): EmbeddedDatabase {
  const { database } = lendable
  const listening: Notifications[] = []
  let closed: Promise<void> | undefined
  const whileOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    if (closed !== undefined) throw toStorageError(new Error('PGlite is closed'))
    return work()
  }
  return {
    kind: database.kind,
    query: (sql, values) => whileOpen(() => database.query(sql, values)),
    transaction: (work, options) => whileOpen(() => database.transaction(work, options)),
    migrate: log => whileOpen(() => database.migrate(log)),
    dump: () => whileOpen(() => database.dump()),
    listen(channels, handlers) {
      const notifications = database.listen(channels, handlers)
      listening.push(notifications)
      return notifications
    },
    close() {
      closed ??= Promise.all(listening.map(each => each.close())).then(() => giveBack(lendable))
      return closed
    },
  }
}

async function giveBack(lendable: LendableDatabase): Promise<void> {
  const { database, schema } = lendable
  if (idle.length >= maxIdle || (await schemaOf(database)) !== schema) return database.close()
  await empty(database)
  idle.push(lendable)
}

async function schemaOf(database: EmbeddedDatabase): Promise<string> {
  const [row] = await database.query<{
    schema: string
  }>(`select md5(string_agg(part, ' ' order by part)) as schema from (
    select 'namespace ' || nspname as part from pg_namespace where nspname not like 'pg\\_t%'
    union all select 'role ' || rolname from pg_roles
    union all select 'class ' || oid || relname from pg_class where relnamespace = 'public'::regnamespace
    union all select 'column ' || attrelid || attname || atttypid || attnotnull || attisdropped || atthasdef
      from pg_attribute join pg_class on pg_class.oid = attrelid where relnamespace = 'public'::regnamespace
    union all select 'constraint ' || oid || conname from pg_constraint
    union all select 'function ' || oid || md5(prosrc) from pg_proc where pronamespace = 'public'::regnamespace
    union all select 'trigger ' || oid || tgenabled::text from pg_trigger
    union all select 'migration ' || id from peage_migrations) parts`)
  return String(row?.schema)
}

/** Empties a database. Skips unused tables, because Postgres makes a new file for each truncated table and index. */
async function empty(database: EmbeddedDatabase): Promise<void> {
  const used = await database.query<{
    name: string
  }>(`select distinct c.oid::regclass::text as name from pg_class c
    left join pg_depend d on d.refobjid = c.oid and d.deptype in ('a', 'i')
    left join pg_class s on s.oid = d.objid and s.relkind = 'S'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and c.relname <> 'peage_migrations'
      and (pg_relation_size(c.oid) > 0 or pg_sequence_last_value(s.oid) is not null)`)
  if (used.length > 0) {
    await database.query(`truncate ${used.map(({ name }) => name).join(', ')} restart identity cascade`)
  }
  await database.query('discard all')
}

let snapshot: Promise<Blob> | undefined

const MIGRATIONS = new URL('../../migrations/', import.meta.url)
const CACHE = new URL('../../node_modules/.cache/peage-test/', import.meta.url)

/**
 * Returns a migrated data folder. It comes from a cache file, because making a new folder takes seconds. The name of
 * the cache file is a digest of the migrations and of other files that affect the folder.
 */
async function migratedSnapshot(): Promise<Blob> {
  const hash = createHash('sha256')
  for (const name of (await readdir(MIGRATIONS)).sort()) {
    hash.update(name).update(await readFile(new URL(name, MIGRATIONS)))
  }
  for (const file of ['package-lock.json', 'src/storage/concurrent-indexes.ts'])
    hash.update(await readFile(new URL(`../../${file}`, import.meta.url)))
  const file = new URL(`${hash.digest('hex').slice(0, 16)}.tar`, CACHE)
  try {
    return new Blob([await readFile(file)])
  } catch {
    const database = await openEmbedded()
    await database.migrate()
    const dump = await database.dump()
    await database.close()
    await mkdir(CACHE, { recursive: true })
    // Several test files may write the cache at once. Each one writes to a separate file, and the last rename wins.
    const own = new URL(`${file.href}.${randomBytes(4).toString('hex')}`)
    await writeFile(own, Buffer.from(await dump.arrayBuffer()))
    await rename(own, file)
    return dump
  }
}
