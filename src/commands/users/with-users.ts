// Gives commands access to accounts, in the database or through a running gateway that has the database open.
import { createPasswords } from '../../accounts/password.ts'
import { systemClock } from '../../clock.ts'
import { createChangeRecorder } from '../../composition/record-changes.ts'
import type { LoadedConfig } from '../../config/load.ts'
import type { Config } from '../../config/sections/schema.ts'
import { createMailQueue } from '../../mail/mail-queue.ts'
import type { Database } from '../../storage/database.ts'
import type { Io } from '../io.ts'
import { loadOrExit } from '../read-config.ts'
import { PreventedWhileLocked, withDatabase } from '../with-database.ts'
import { AdminUnavailable, createAdminClient } from './admin-client.ts'
import { createDatabaseUsers, type UserAdministration } from './administration.ts'

export type WithUsers = typeof withUsers

/**
 * Runs `work` on the accounts in the database. If a running gateway uses the data folder, `work` goes through the admin
 * listener of that gateway instead.
 * @throws CommanderError (exit code 2) if the configuration is invalid; otherwise an Error with a message for the
 *   operator
 */
export async function withUsers(
  io: Io,
  file: string,
  work: (users: UserAdministration) => Promise<void>,
): Promise<void> {
  await withUsersOf(io, file, loadOrExit(io, file, io.stderr), work)
}

/** Runs `work` like `withUsers`, with a configuration that is already loaded. @returns the result of `work` */
export function withUsersOf<T>(
  io: Io,
  file: string,
  { config, variables }: Pick<LoadedConfig, 'config' | 'variables'>,
  work: (users: UserAdministration) => Promise<T>,
): Promise<T> {
  const onDatabase = (database: Database) => work(databaseUsers(database, config))
  return withDatabase(io, file, config, onDatabase, async () => {
    try {
      return await work(createAdminClient(config.admin, file, variables['/admin/token']))
    } catch (error) {
      if (!(error instanceof AdminUnavailable)) throw error
      const remedy = `Stop the process that uses the folder, or run it with an admin listener and a token that ${file} also contains.`
      throw new PreventedWhileLocked(`${error.message}. ${remedy}`)
    }
  })
}

function databaseUsers(database: Database, config: Config): UserAdministration {
  return createDatabaseUsers({
    database,
    clock: systemClock,
    recordChanges: createChangeRecorder(() => config, systemClock, createMailQueue(systemClock)),
    hashPassword: createPasswords(config.auth.hashing).hash,
  })
}
