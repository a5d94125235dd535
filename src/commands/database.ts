// The database that a configuration names, for the time of one command; failures in plain words.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Database, StorageError } from '../backing/database.ts'
import { FolderInUse } from '../backing/folder-lock.ts'
import { openBacking } from '../backing/open.ts'
import { systemClock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { Io } from './io.ts'

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
    const backing = await openBacking(config, { logger: silent, clock: systemClock })
    try {
      await work(backing.database)
    } finally {
      await backing.close()
    }
  } catch (error) {
    if (!(error instanceof FolderInUse)) throw inPlainWords(error, storage.postgres === '', file)
    const objection = await otherwise()
    if (objection !== undefined) {
      throw new Error(`the data folder ${data_dir} is in use by process ${error.pid}, which ${objection}`)
    }
  }
}

/** What the store has to say reaches the operator as an error. */
const silent = { info: () => {}, warn: () => {} }

function inPlainWords(error: unknown, embedded: boolean, file: string): unknown {
  if (!(error instanceof StorageError)) return error
  const { code = '', message } = error
  // A table or a column that is not there.
  if (code === '42P01' || code === '42703') {
    return new Error(`the database is not migrated to this version: run peage migrate -c ${file} first`)
  }
  const reason = message.replace(/^database: /, '')
  if (embedded)
    return new Error(`the embedded database failed (${reason}): check storage.data_dir in ${file}`)
  return new Error(
    `the database failed (${reason}): check that it is up, and that storage.postgres in ${file} is right`,
  )
}

/** What there is to say where the folder is in use, and the gateway that has it does not offer what is asked. */
export async function notOffered(): Promise<string> {
  return 'cannot be asked to do this: stop it first'
}
