// The database that a configuration names, for the time of one command; failures in plain words.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Database } from '../storage/database.ts'
import { openBacking } from '../storage/open.ts'
import { FolderInUse } from '../storage/pglite/data-dir-lock.ts'
import type { Io } from './io.ts'
import { inPlainWords } from './store-failure.ts'

/**
 * @param otherwise where another process has the folder: does the work, or returns what stands against it
 * @throws Error with a plain sentence where the store fails
 */
export async function onDatabase(
  io: Io,
  file: string,
  { storage }: Config,
  work: (database: Database) => Promise<void>,
  otherwise: () => Promise<string | undefined>,
): Promise<void> {
  const data_dir = resolve(io.cwd, storage.data_dir)
  // Opening would make the folder, and a database without tables in it.
  if (storage.postgres === '' && !existsSync(join(data_dir, 'postgres'))) {
    throw new Error(`there is no database in ${data_dir} yet: run peage migrate -c ${file} first`)
  }
  const config = { storage: { ...storage, data_dir, pool: 1, redis: null } }
  try {
    const backing = await openBacking(config, { logger: silent, failureLog: () => {}, clock: systemClock })
    try {
      await work(backing.database)
    } finally {
      await backing.close()
    }
  } catch (error) {
    if (!(error instanceof FolderInUse)) throw inPlainWords(error, storage, file)
    const objection = await otherwise()
    if (objection !== undefined) {
      throw new Error(`the data folder ${data_dir} is in use by process ${error.pid}, which ${objection}`)
    }
  }
}

/** What the store has to say reaches the operator as an error. */
const silent = { info: () => {}, warn: () => {} }

/** What there is to say where the folder is in use, and the gateway that has it does not offer what is asked. */
export async function notOffered(): Promise<string> {
  return 'cannot be asked to do this: stop it first'
}
