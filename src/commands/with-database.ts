// Opens the configured database for one command, and explains failures.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { openFolder } from '../composition/open-folder.ts'
import type { Config } from '../config/sections/schema.ts'
import type { Database } from '../storage/database.ts'
import { openStorage } from '../storage/open.ts'
import { DataDirLocked } from '../storage/pglite/data-dir-lock.ts'
import type { Io } from './io.ts'
import { inPlainWords } from './store-failure.ts'

/**
 * The error of a command that cannot run while another process uses the data folder. Its message is printed after "… in
 * use by process N."
 */
export class PreventedWhileLocked extends Error {
  override readonly name = 'PreventedWhileLocked'
}

/**
 * Opens the database, runs `work` and closes the database.
 * @param whenLocked called instead of `work` if another process uses the data folder; may throw PreventedWhileLocked
 * @throws Error with a message for the operator if the store fails
 */
export async function withDatabase<T>(
  io: Io,
  file: string,
  { storage }: Config,
  work: (database: Database) => Promise<T>,
  whenLocked: () => Promise<T>,
): Promise<T> {
  const data_dir = resolve(io.cwd, storage.data_dir)
  // Without this check, `openStorage` would create a missing folder with a database that has no tables.
  if (!hasDatabase(io, { storage })) {
    throw new Error(`there is no database in ${data_dir} yet. Run peage migrate -c ${file} first.`)
  }
  const config = { storage: { ...storage, data_dir, pool: 1, redis: '' } }
  try {
    const opened = await openStorage(config, dependencies, io.openFolder ?? openFolder)
    try {
      return await work(opened.database)
    } finally {
      await opened.close()
    }
  } catch (error) {
    if (!(error instanceof DataDirLocked)) throw inPlainWords(error, storage, file)
    try {
      return await whenLocked()
    } catch (prevented) {
      if (!(prevented instanceof PreventedWhileLocked)) throw prevented
      throw new Error(`the data folder ${data_dir} is in use by process ${error.pid}. ${prevented.message}`)
    }
  }
}

/** Returns whether the database exists. Only an embedded database can be missing, if it was not created yet. */
export function hasDatabase(io: Io, { storage }: Pick<Config, 'storage'>): boolean {
  return storage.postgres !== '' || existsSync(join(resolve(io.cwd, storage.data_dir), 'postgres'))
}

const dependencies = {
  // The operator sees a storage failure as the error of the command, so nothing is logged.
  logger: { info: () => {}, warn: () => {} },
  failureLog: () => {},
  clock: systemClock,
  // The limit is long, because a command may run far from the database or on a busy machine. No request waits for it.
  connectTimeoutMs: 5_000,
}

/** Use this as `whenLocked` if a running gateway cannot do the work of the command. */
export async function unsupportedWhileRunning(): Promise<never> {
  throw new PreventedWhileLocked('This command cannot run at the same time. Stop that process first.')
}

/** Use this as `whenLocked` for a command that reads or writes all users. */
export async function stopGatewayFirst(): Promise<never> {
  throw new PreventedWhileLocked('This command needs the database for itself. Stop the gateway first.')
}
