// Refuses a folder that another Postgres has written: PGlite would end in the middle of opening it, and say nothing of why.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The major version that PGlite brings: it reads no other's files. */
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
