// Opens the embedded database, which is PGlite behind the Database interface. Its data is in a folder, or in memory for
// tests.
import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PGlite, types } from '@electric-sql/pglite'
import type { Listen } from '../change-feed.ts'
import { buildIndexes } from '../concurrent-indexes.ts'
import { type Database, type Prepared, type Queryable, textOf } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { type MigrationLog, runMigrations } from '../migrate.ts'
import { DataDirLocked, lockDataDir } from './data-dir-lock.ts'
import {
  DataDirOfAnotherPostgres,
  makeFolder,
  refuseAnotherPostgres,
  restoreEmptyFolders,
  UnusableFolder,
} from './data-folder.ts'
import { unpackPrepared } from './prepared-folder.ts'
import { pgliteModule } from './wasm-module.ts'

export interface EmbeddedOptions {
  /**
   * The data folder. The database is in its subfolder `postgres`. If `dir` is absent or `memory://`, the database is in
   * memory.
   */
  dir?: string | undefined
  /**
   * The result of `dump`. The new database starts with this content. A snapshot works only for a database in memory.
   */
  snapshot?: Blob | undefined
}

export interface EmbeddedDatabase extends Database {
  readonly kind: 'embedded'
  /** Applies pending migrations. Call it before any other query. @returns the names of the applied migrations */
  migrate(log?: MigrationLog): Promise<string[]>
  readonly listen: Listen
  /** Returns the whole database as a tar archive, for `snapshot`. */
  dump(): Promise<Blob>
}

/**
 * Opens the embedded database, and keeps its folder locked until `close`. Statements run one at a time. If the process
 * is killed, committed data survives, because PGlite writes it before it responds (`relaxedDurability: false`). After a
 * power loss, committed data may be missing, because PGlite does not call fsync.
 * @throws DataDirLocked when another process has locked the folder
 * @throws DataDirOfAnotherPostgres when another major version of Postgres wrote the folder
 * @throws Error, with a message for operators, when the folder is not writable
 */
export async function openEmbedded({ dir, snapshot }: EmbeddedOptions = {}): Promise<EmbeddedDatabase> {
  if (dir === undefined || dir === 'memory://') {
    const pglite = await open(snapshot === undefined ? {} : { loadDataDir: snapshot })
    return embeddedDatabase({ pglite, prepared: [] }, async () => {})
  }
  const lock = await claim(dir)
  try {
    return embeddedDatabase(await openFolder(dir), () => lock.release())
  } catch (error) {
    await lock.release()
    throw error instanceof UnusableFolder ? unwritable(dir, error) : toStorageError(error)
  }
}

async function claim(dir: string) {
  try {
    await makeFolder(dir)
    refuseAnotherPostgres(dir)
    return await lockDataDir(dir)
  } catch (error) {
    if (error instanceof DataDirLocked || error instanceof DataDirOfAnotherPostgres) throw error
    throw unwritable(dir, error)
  }
}

function unwritable(dir: string, error: unknown): Error {
  const { code = 'unknown' } = error as NodeJS.ErrnoException
  const reason = error instanceof UnusableFolder ? error.message : code
  return new Error(
    `the gateway cannot write to the data folder ${dir} (${reason}). Set storage.data_dir to a writable folder, or ` +
      'set storage.postgres.',
    { cause: error },
  )
}

interface Opened {
  pglite: PGlite
  /** The migrations that were already applied in the prepared folder; empty if the prepared folder was not used. */
  prepared: readonly string[]
}

/**
 * Opens the database in its folder. A new database is created under another name, and renamed when it is complete. So
 * if the process is killed during its first start, no incomplete database has the final name.
 */
async function openFolder(dir: string): Promise<Opened> {
  const folder = join(dir, 'postgres')
  if (existsSync(folder)) {
    await restoreEmptyFolders(folder)
    return { pglite: await open({ dataDir: folder }), prepared: [] }
  }
  const fresh = join(dir, 'postgres.new')
  await rm(fresh, { recursive: true, force: true })
  const prepared = await unpackPrepared(fresh)
  if (prepared === undefined) {
    await mkdir(fresh, { mode: 0o700 })
    await (await open({ dataDir: fresh })).close()
  }
  await rename(fresh, folder)
  return { pglite: await open({ dataDir: folder }), prepared: prepared ?? [] }
}

/**
 * The memory for the buffers of Postgres. 8 MB are enough for the tables of a small installation. The default would
 * occupy 128 MB.
 */
const SETTINGS = ['-c', 'shared_buffers=8MB']

function open(options: { dataDir?: string; loadDataDir?: Blob }): Promise<PGlite> {
  return PGlite.create({
    ...options,
    relaxedDurability: false,
    pgliteWasmModule: pgliteModule(),
    // The size of one WAL file in MB. The default is 16.
    initDbStartParams: ['--wal-segsize=1'],
    startParams: [...PGlite.defaultStartParams, ...SETTINGS],
    parsers: { [types.INT8]: Number, [types.DATE]: value => value },
  })
}

function embeddedDatabase({ pglite, prepared }: Opened, releaseLock: () => Promise<void>): EmbeddedDatabase {
  let closed: Promise<void> | undefined
  let unreported = prepared
  return {
    kind: 'embedded',
    ...queryable(pglite),
    async transaction(work) {
      let thrown: { error: unknown } | undefined
      try {
        return await pglite.transaction(async tx => {
          try {
            return await work(queryable(tx))
          } catch (error) {
            thrown = { error }
            throw error
          }
        })
      } catch (error) {
        throw thrown === undefined ? toStorageError(error) : thrown.error
      }
    },
    async migrate(log = () => {}) {
      const reported = unreported
      unreported = []
      for (const name of reported) log('info', `migration ${name} applied`)
      const client = migrationClient(pglite)
      const applied = await runMigrations(client, log)
      await buildIndexes(client)
      return [...reported, ...applied]
    },
    listen: listenerOf(pglite),
    dump: () => pglite.dumpDataDir('none'),
    close() {
      closed ??= pglite.close().finally(releaseLock)
      return closed
    },
  }
}

function queryable(runner: Pick<PGlite, 'query'>): Queryable {
  return {
    async query<Row extends object>(sql: string | Prepared, values: readonly unknown[] = []) {
      try {
        return (await runner.query<Row>(textOf(sql), [...values])).rows
      } catch (error) {
        throw toStorageError(error)
      }
    },
  }
}

/** Listens for notifications. `reconnect` does nothing, because no notification is lost inside one process. */
function listenerOf(pglite: PGlite): Listen {
  return (channels, { onNotification, onLost, onListening }) => {
    const listening = Promise.all(
      channels.map(channel => pglite.listen(channel, payload => onNotification(channel, payload))),
    )
    listening.then(onListening, onLost)
    return {
      reconnect() {},
      async close() {
        const ends = await listening.catch(() => [])
        for (const end of ends) await end().catch(() => {})
      },
    }
  }
}

/**
 * Returns a client for the migration runner. A migration file may contain several statements, which only `exec` can
 * run.
 */
function migrationClient(pglite: PGlite) {
  return {
    async query(sql: string, values?: unknown[]) {
      if (values !== undefined) return pglite.query(sql, values)
      return (await pglite.exec(sql)).at(-1) ?? { rows: [] }
    },
  }
}
