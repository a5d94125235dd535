// Opens accounts to an operator: on the database, or through the gateway that has it.

import { systemClock } from '../../clock.ts'
import type { Config } from '../../config/schema/schema.ts'
import type { Database } from '../../storage/database.ts'
import { readConfiguration } from '../config-option.ts'
import type { Io } from '../io.ts'
import { notOffered, onDatabase } from '../with-database.ts'
import { ListenerUnusable, throughAdminListener } from './admin-client.ts'
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
  await onDatabase(io, file, config, recordsFor(work), async () => {
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
  await onDatabase(
    io,
    file,
    config,
    recordsFor(records => work(records, config)),
    notOffered,
  )
}

function recordsFor(work: (records: UserRecords) => Promise<void>): (database: Database) => Promise<void> {
  return database => work(createUserRecords(database, systemClock))
}
