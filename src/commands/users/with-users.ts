// Gives commands access to accounts: on the database, or through the gateway that has it open.

import { createPasswords } from '../../accounts/password.ts'
import { systemClock } from '../../clock.ts'
import { createChangeRecorder } from '../../composition/record-changes.ts'
import type { Config } from '../../config/schema/schema.ts'
import type { Database } from '../../storage/database.ts'
import type { Io } from '../io.ts'
import { readConfig } from '../read-config.ts'
import { withDatabase } from '../with-database.ts'
import { AdminUnavailable, createAdminClient } from './admin-client.ts'
import { createDatabaseUsers, type UserAdministration } from './administration.ts'

export type WithUsers = typeof withUsers

/**
 * Runs `work` on the database, or through the admin listener of the gateway that has its folder locked.
 * @throws CommanderError (exit 2) for the configuration; an Error with a sentence for the operator otherwise
 */
export async function withUsers(
  io: Io,
  file: string,
  work: (users: UserAdministration) => Promise<void>,
): Promise<void> {
  const config = readConfig(io, file, io.stderr)
  await withDatabase(io, file, config, toDatabaseWork(config, work), async () => {
    try {
      await work(createAdminClient(config.admin, file))
    } catch (error) {
      if (!(error instanceof AdminUnavailable)) throw error
      return `${error.message}: stop it, or run it with an admin listener and a token that ${file} has too`
    }
  })
}

function toDatabaseWork(
  config: Config,
  work: (users: UserAdministration) => Promise<void>,
): (database: Database) => Promise<void> {
  const { record } = createChangeRecorder(config, systemClock)
  const hash = async (password: string) => (await createPasswords(config.auth.hashing)).hash(password)
  return database => work(createDatabaseUsers(database, systemClock, record, hash))
}
