// Opens accounts to an operator: on the database, or through the gateway that has it; failures in plain words.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { StorageError } from '../../backing/database.ts'
import { FolderInUse } from '../../backing/folder-lock.ts'
import { openBacking } from '../../backing/open.ts'
import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/schema.ts'
import { readConfiguration } from '../configuration.ts'
import type { Io } from '../io.ts'
import { ListenerUnusable, throughAdminListener } from './admin-listener.ts'
import { createUserRecords, type UserAdministration, type UserRecords } from './administration.ts'

/**
 * Runs `work` on the database, or through the admin listener of the gateway that has its folder.
 * @throws CommanderError (exit 2) for the configuration; an Error with a plain sentence for anything else
 */
export async function administer(
  io: Io,
  file: string,
  work: (users: UserAdministration) => Promise<void>,
): Promise<void> {
  const config = readConfiguration(io, file, io.stderr)
  await onDatabase(io, file, config, work, async () => {
    try {
      await work(throughAdminListener(config.admin, file))
    } catch (error) {
      if (!(error instanceof ListenerUnusable)) throw error
      return `${error.message}: stop it, or run it with an admin listener and a token that ${file} has too`
    }
  })
}

/** Runs `work` that the admin API does not offer; throws as `administer` does. */
export async function administerRecords(
  io: Io,
  file: string,
  work: (records: UserRecords, config: Config) => Promise<void>,
): Promise<void> {
  const config = readConfiguration(io, file, io.stderr)
  const notOffered = async () => 'cannot be asked to do this: stop it first'
  await onDatabase(io, file, config, records => work(records, config), notOffered)
}

/** @param otherwise where another process has the folder: does the work, or returns what stands against it */
async function onDatabase(
  io: Io,
  file: string,
  { storage, auth }: Config,
  work: (records: UserRecords) => Promise<void>,
  otherwise: () => Promise<string | undefined>,
): Promise<void> {
  const data_dir = resolve(io.cwd, storage.data_dir)
  // Opening would make the folder, and a database without tables in it.
  if (storage.postgres === '' && !existsSync(join(data_dir, 'postgres'))) {
    throw new Error(`there is no database in ${data_dir} yet: run peage migrate -c ${file} first`)
  }
  const config = { storage: { ...storage, data_dir, pool: 1, redis: null }, rate_limits: auth.rate_limits }
  try {
    const backing = await openBacking(config, { logger: silent, clock: systemClock })
    try {
      await work(createUserRecords(backing.database, systemClock))
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
