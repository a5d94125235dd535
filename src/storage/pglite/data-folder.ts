// Creates and checks the folders of an embedded database before Postgres opens them.
import { readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/**
 * A folder cannot be created or used. The message has no period, because another message includes it in parentheses.
 */
export class UnusableFolder extends Error {
  override readonly name = 'UnusableFolder'
}

/**
 * Creates `dir` and its parents. Node's recursive `mkdir` is not used. It would retry forever in `/proc`, because
 * `/proc` exists but refuses new folders with ENOENT.
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
    // Another process may have created the folder in the meantime.
    if (kindOf(dir) === 'folder') return
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    // In this case, EEXIST means that the path is a broken link.
    if (code === 'EEXIST') throw new UnusableFolder(`${dir} is not a folder`)
    throw new UnusableFolder(`cannot create a folder in ${parent}: ${code}`)
  }
}

/** The folders that are empty in a new database. Postgres does not start without them. */
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
 * Creates the empty folders of a database again, because object stores, git and some archives do not keep them.
 * @param database the folder that contains `PG_VERSION`
 * @throws UnusableFolder
 */
export async function restoreEmptyFolders(database: string): Promise<void> {
  if (kindOf(database) === 'other') throw new UnusableFolder(`${database} is not a folder`)
  if (kindOf(join(database, 'PG_VERSION')) === undefined) return
  for (const name of emptyFolders) {
    // The parent folder of `name` is never empty, so every complete copy contains it. If the parent folder is missing,
    // the copy is damaged. The parent folder is not created here, so that Postgres reports the damage.
    if (kindOf(dirname(join(database, name))) === 'folder') await makeFolder(join(database, name))
  }
}

/** The major version of PGlite's Postgres. PGlite crashes if it opens the files of another major version. */
const major = '18'

export class DataDirOfAnotherPostgres extends Error {
  override readonly name = 'DataDirOfAnotherPostgres'

  constructor(dir: string, version: string) {
    super(
      `the data folder ${dir} was written by Postgres ${version}. This version of Péage contains Postgres ${major} and ` +
        'cannot read it. Nothing was changed. Start the version of Péage that wrote it, or set another storage.data_dir.',
    )
  }
}

/**
 * Checks which Postgres wrote the data folder. A folder without a valid version is accepted here, because Postgres
 * itself checks the folder.
 * @param dir the data folder; the database is in its subfolder `postgres`, if that exists
 * @throws DataDirOfAnotherPostgres if another major version wrote the folder
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

/** Returns undefined if nothing exists at the path. */
function kindOf(path: string): 'folder' | 'other' | undefined {
  try {
    return statSync(path).isDirectory() ? 'folder' : 'other'
  } catch {
    return undefined
  }
}
