// Makes and checks the folders of an embedded database before Postgres opens them.
import { readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** A folder cannot be made or used; the message is a clause for a sentence about the data folder. */
export class UnusableFolder extends Error {
  override readonly name = 'UnusableFolder'
}

/**
 * Makes `dir` and the folders above it. Node's `mkdir` with `recursive` would retry without end in `/proc`, which exists and
 * refuses new folders with ENOENT.
 * @throws UnusableFolder
 */
export async function makeFolder(dir: string): Promise<void> {
  const found = kindOf(dir)
  if (found === 'folder') return
  if (found === 'other') throw new UnusableFolder(`${dir} is not a folder`)
  const parent = dirname(dir)
  if (parent !== dir) await makeFolder(parent)
  try {
    await mkdir(dir, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it meanwhile.
    if (kindOf(dir) === 'folder') return
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    // A link to a place that does not exist.
    if (code === 'EEXIST') throw new UnusableFolder(`${dir} is not a folder`)
    throw new UnusableFolder(`${parent} accepts no new folder: ${code}`)
  }
}

/** The folders that are empty in a new database. Postgres does not start without them. Parents come first. */
const emptyFolders = [
  'pg_commit_ts',
  'pg_dynshmem',
  'pg_logical/mappings',
  'pg_logical/snapshots',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat',
  'pg_stat_tmp',
  'pg_tblspc',
  'pg_twophase',
  'pg_wal/archive_status',
  'pg_wal/summaries',
]

/**
 * Makes the empty folders of a database again: object stores, git and some archives restore no empty folder.
 * @param database the folder with `PG_VERSION` in it
 * @throws UnusableFolder
 */
export async function restoreEmptyFolders(database: string): Promise<void> {
  if (kindOf(database) === 'other') throw new UnusableFolder(`${database} is not a folder`)
  if (kindOf(join(database, 'PG_VERSION')) === undefined) return
  for (const name of emptyFolders) {
    // The copy did not lose a folder that is never empty. Postgres reports such a loss itself.
    if (kindOf(dirname(join(database, name))) === 'folder') await makeFolder(join(database, name))
  }
}

/** The major version of PGlite's Postgres. PGlite would end in the middle of opening the files of another one. */
const major = '18'

/** The folder was written by another major version of Postgres. */
export class DataDirOfAnotherPostgres extends Error {
  override readonly name = 'DataDirOfAnotherPostgres'

  constructor(dir: string, version: string) {
    super(
      `the data folder ${dir} was written by Postgres ${version}, and this Péage brings Postgres ${major}, which cannot ` +
        'read it: start the version of Péage that wrote it (nothing in it was changed), or name another data_dir',
    )
  }
}

/**
 * A folder without a version, or with something else in its place, is left for Postgres to judge.
 * @param dir the data folder; the database is in its `postgres/`, if it was made already
 * @throws DataDirOfAnotherPostgres
 */
export function refuseAnotherPostgres(dir: string): void {
  let version: string
  try {
    version = readFileSync(join(dir, 'postgres', 'PG_VERSION'), 'utf8').trim()
  } catch {
    return
  }
  if (/^\d+$/.test(version) && version !== major) throw new DataDirOfAnotherPostgres(dir, version)
}

/** Undefined if nothing has that name. */
function kindOf(path: string): 'folder' | 'other' | undefined {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'other'
  } catch {
    return undefined
  }
}
