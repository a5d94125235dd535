// Gives commands access to accounts. A command opens the database itself, or uses a running gateway that already has
// the database open.
import { createPasswords } from '../../accounts/password.ts'
import { systemClock } from '../../clock.ts'
import { createChangeRecorder } from '../../composition/record-changes.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { createPlans } from '../../config/plans.ts'
import type { Config } from '../../config/sections/schema.ts'
import { createMailQueue } from '../../mail/mail-queue.ts'
import type { Database } from '../../storage/database.ts'
import type { Plan } from '../../users/user.ts'
import type { Io } from '../io.ts'
import { loadOrExit } from '../read-config.ts'
import { hasDatabase, PreventedWhileLocked, withDatabase } from '../with-database.ts'
import { AdminUnavailable, createAdminClient } from './admin-client.ts'
import { createDatabaseUsers, type UserAdministration } from './administration.ts'
import { toCommanderError, UnknownPlan } from './unknown-plan.ts'

export type WithUsers = typeof withUsers

/**
 * Runs `work` on the accounts in the database, with the plans of the configuration. If a running gateway uses the data
 * folder, `work` goes through the admin listener of that gateway instead.
 * @param plan a plan that must be configured: in the running gateway if `work` goes through it, otherwise in the file
 * @throws CommanderError (exit code 2) if the configuration is invalid or does not contain the plan; otherwise an Error
 *   with a message for the operator
 */
export async function withUsers(
  io: Io,
  file: string,
  work: (users: UserAdministration) => Promise<void>,
  plan?: Plan,
): Promise<void> {
  const loaded = loadOrExit(io, file, io.stderr)
  const { names } = createPlans(loaded.config.plans)
  try {
    if (plan === undefined || names.includes(plan)) return await withUsersOf(io, file, loaded, work)
    // The file does not contain the plan. So the plan is refused, unless a running gateway has it.
    const refuse = async () => {
      throw new UnknownPlan(plan, names)
    }
    if (!hasDatabase(io, loaded.config)) await refuse()
    await withUsersOf(io, file, loaded, work, refuse)
  } catch (error) {
    throw error instanceof UnknownPlan ? toCommanderError(io, error) : error
  }
}

/**
 * Does the same as `withUsers`, but with a configuration that is already loaded.
 * @param onDatabase runs instead of `work` if no gateway uses the data folder
 * @returns the result of `work`
 */
export function withUsersOf<T>(
  io: Io,
  file: string,
  { config, variables }: Pick<LoadedConfig, 'config' | 'variables'>,
  work: (users: UserAdministration) => Promise<T>,
  onDatabase = work,
): Promise<T> {
  return withDatabase(
    io,
    file,
    config,
    database => onDatabase(databaseUsers(database, config)),
    async () => {
      try {
        return await work(createAdminClient(config.admin, file, variables['/admin/token']))
      } catch (error) {
        if (!(error instanceof AdminUnavailable)) throw error
        const remedy = `Stop the process that uses the folder. Or restart that process with an admin listener and an admin token, and put the same token into ${file}.`
        throw new PreventedWhileLocked(`${error.message}. ${remedy}`)
      }
    },
  )
}

function databaseUsers(database: Database, config: Config): UserAdministration {
  return createDatabaseUsers({
    database,
    clock: systemClock,
    plans: createPlans(config.plans),
    providers: config.auth.providers,
    recordChanges: createChangeRecorder(() => config, systemClock, createMailQueue(systemClock)),
    hashPassword: createPasswords(config.auth.hashing).hash,
  })
}
