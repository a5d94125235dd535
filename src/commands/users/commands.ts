// Defines `peage users …`, which administers accounts.
import { Argument, Command } from 'commander'
import type { Plan } from '../../users/user.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserFilter, UserRef } from './administration.ts'
import {
  keyArgument,
  type PasswordOption,
  passwordOption,
  readEmail,
  readNewEmail,
  requireTerminal,
  userCommand,
} from './arguments.ts'
import { emailInUse, findUser, noSuchUser, orNoSuchUser, report } from './errors.ts'
import { exportCommand, importCommand } from './import/bulk-command.ts'
import {
  hashesAsText,
  keysAsJson,
  keysAsTable,
  sessionsAsJson,
  sessionsAsText,
  userAsJson,
  userAsText,
  userLabel,
  usersAsJson,
  usersAsTable,
} from './print-users.ts'
import { readPlanName } from './unknown-plan.ts'
import type { WithUsers } from './with-users.ts'

export function usersCommand(io: Io): Command {
  const users = new Command('users').description('Manage accounts; <user> is an ID or an email')
  for (const command of [
    list(io),
    show(io),
    create(io),
    setPlan(io),
    setPassword(io),
    setVerified(io),
    resetUsage(io),
    activation(io, 'activate', 1),
    activation(io, 'deactivate', 0),
    exportCommand(io),
    importCommand(io),
    deletion(io),
    sessions(io),
    revokeSessions(io),
    keys(io),
    revokeKeys(io),
    hashes(io),
  ]) {
    users.addCommand(withConfigOption(command).option('--json', 'print JSON'))
  }
  return users
}

interface Options extends ConfigOption {
  readonly json?: true
}

function list(io: Io): Command {
  return new Command('list')
    .description('List users, with optional filters')
    .option('--email <email>', 'only the user with this email', readEmail)
    .option('--plan <plan>', 'only users on this plan', readPlanName)
    .action(({ config, json, ...filter }: Options & UserFilter) =>
      withUsers(io, config, users => {
        const pages = users.list(filter)
        return print(io.stdout, json ? usersAsJson(pages) : usersAsTable(pages))
      }),
    )
}

function show(io: Io): Command {
  return userCommand('show', 'Show a user').action((ref: UserRef, { config, json }: Options) =>
    withUsers(io, config, async users => {
      const user = await findUser(users, ref)
      const identities = await users.identities(user.id)
      await print(io.stdout, [json ? userAsJson(user, identities) : userAsText(user, identities)])
    }),
  )
}

function create(io: Io): Command {
  return new Command('create')
    .description('Create a user; asks for the password')
    .addArgument(new Argument('<email>', 'email of the new user').argParser(readNewEmail))
    .option('--plan <plan>', 'plan of the new user; if omitted, the first plan', readPlanName)
    .addOption(passwordOption())
    .action((email: string, options: Options & PasswordOption & { plan?: Plan }, command: Command) => {
      if (!options.passwordStdin) requireTerminal(io, command, 'use --password-stdin')
      return withUsers(
        io,
        options.config,
        async users => {
          const existing = await users.find({ email })
          if (existing !== undefined) throw emailInUse(existing)
          const user = await users.create(email, await readNewPassword(io, options), options.plan)
          if (user === 'email_in_use') throw emailInUse(await findUser(users, { email }))
          await report(io, options, user, `${userLabel(user)} was created on plan ${user.plan}`)
        },
        options.plan,
      )
    })
}

function setPlan(io: Io): Command {
  return userCommand('set-plan', 'Change the plan of a user')
    .addArgument(new Argument('<plan>', 'new plan').argParser(readPlanName))
    .action((ref: UserRef, plan: Plan, options: Options) =>
      withUsers(
        io,
        options.config,
        async users => {
          const { id } = await findUser(users, ref)
          const user = orNoSuchUser(await users.update(id, { plan }), ref)
          await report(io, options, user, `${userLabel(user)} is now on plan ${user.plan}`)
        },
        plan,
      ),
    )
}

function setPassword(io: Io): Command {
  return userCommand('set-password', 'Change the password of a user and revoke all sessions')
    .addOption(passwordOption())
    .action((ref: UserRef, options: Options & PasswordOption, command: Command) => {
      if (!options.passwordStdin) requireTerminal(io, command, 'use --password-stdin')
      return withUsers(io, options.config, async users => {
        const user = await findUser(users, ref)
        const password = await readNewPassword(io, options)
        if (!(await users.setPassword(user.id, password))) throw noSuchUser(ref)
        await report(io, options, user, `${userLabel(user)} has a new password; all sessions were revoked`)
      })
    })
}

function setVerified(io: Io): Command {
  return userCommand('set-verified', 'Mark the email of a user as verified')
    .option('--no', 'mark the email as not verified')
    .action((ref: UserRef, options: Options & { no?: boolean }) =>
      withUsers(io, options.config, async users => {
        const { id } = await findUser(users, ref)
        const user = orNoSuchUser(await users.update(id, { email_verified: !options.no }), ref)
        const isVerified = user.email_verified_at !== null
        await report(
          io,
          options,
          user,
          `the email of ${userLabel(user)} is marked as ${isVerified ? '' : 'not '}verified`,
        )
      }),
    )
}

function resetUsage(io: Io): Command {
  return userCommand('reset-usage', 'Reset the daily usage and the quotas of a user')
    .option('--quota <name>', 'only this quota; free_daily means the daily usage')
    .action((ref: UserRef, options: Options & { quota?: string }, command: Command) =>
      withUsers(io, options.config, async users => {
        const { resettableQuotas } = await import('../../usage/quota-usage.ts')
        const { quota } = options
        const known = resettableQuotas((await users.plans()).plans)
        if (quota !== undefined && !known.includes(quota)) {
          const remedy = `Use one of: ${known.join(', ')}.`
          command.error(`error: no plan has the quota ${quota}. ${remedy}`, { exitCode: 2 })
        }
        const { id } = await findUser(users, ref)
        const user = orNoSuchUser(await users.resetUsage(id, quota), ref)
        const label = userLabel(user)
        const hasOnlyDailyUse = quota === 'free_daily' || known.length === 1
        if (hasOnlyDailyUse) await report(io, options, user, `the daily usage of ${label} was reset`)
        else if (quota !== undefined)
          await report(io, options, user, `the quota ${quota} of ${label} was reset`)
        else await report(io, options, user, `the daily usage and all quotas of ${label} were reset`)
      }),
    )
}

function activation(io: Io, name: string, is_active: 0 | 1): Command {
  const effect = is_active === 1 ? 'Reactivate a user' : 'Deactivate a user without deleting any data'
  return userCommand(name, effect).action((ref: UserRef, options: Options) =>
    withUsers(io, options.config, async users => {
      const { id } = await findUser(users, ref)
      const user = orNoSuchUser(await users.update(id, { is_active }), ref)
      await report(io, options, user, `${userLabel(user)} is ${user.is_active === 1 ? 'active' : 'inactive'}`)
    }),
  )
}

function deletion(io: Io): Command {
  return userCommand('delete', 'Delete a user and all of their data')
    .option('--yes', 'delete without asking for confirmation')
    .action((ref: UserRef, options: Options & { yes?: true }, command: Command) => {
      if (!options.yes) requireTerminal(io, command, 'use --yes')
      return withUsers(io, options.config, async users => {
        const user = await findUser(users, ref)
        const { confirm } = await import('./prompt.ts')
        if (!options.yes && !(await confirm(io, `Delete ${userLabel(user)} and all of their data?`))) {
          throw new Error('nothing was deleted')
        }
        if (!(await users.delete(user.id))) throw noSuchUser(ref)
        await report(io, options, user, `${userLabel(user)} was deleted`)
      })
    })
}

function sessions(io: Io): Command {
  return userCommand('sessions', 'List the active sessions of a user').action(
    (ref: UserRef, { config, json }: Options) =>
      withUsers(io, config, async users => {
        const { id } = await findUser(users, ref)
        const active = await users.sessions(id)
        await print(io.stdout, [json ? sessionsAsJson(active) : sessionsAsText(active)])
      }),
  )
}

function revokeSessions(io: Io): Command {
  return userCommand(
    'revoke-sessions',
    'Revoke all sessions of a user; access tokens stay valid until they expire',
  ).action((ref: UserRef, options: Options) =>
    withUsers(io, options.config, async users => {
      const user = await findUser(users, ref)
      if (!(await users.revokeSessions(user.id))) throw noSuchUser(ref)
      await report(io, options, user, `all sessions of ${userLabel(user)} were revoked`)
    }),
  )
}

function keys(io: Io): Command {
  return userCommand('keys', 'List the API keys of a user').action(
    (ref: UserRef, { config, json }: Options) =>
      withUsers(io, config, async users => {
        const { id } = await findUser(users, ref)
        const found = await users.keys(id)
        await print(io.stdout, [json ? keysAsJson(found) : keysAsTable(found, Date.now())])
      }),
  )
}

function revokeKeys(io: Io): Command {
  return userCommand('revoke-keys', 'Revoke one API key of a user, or all of them')
    .addArgument(keyArgument())
    .action((ref: UserRef, key: string | undefined, options: Options) =>
      withUsers(io, options.config, async users => {
        const user = await findUser(users, ref)
        if (!(await users.revokeKeys(user.id, key))) throw noSuchUser(ref)
        const label = userLabel(user)
        if (key === undefined) await report(io, options, user, `all API keys of ${label} were revoked`)
        else await report(io, options, user, `the API key ${key} of ${label} was revoked, if it existed`)
      }),
    )
}

function hashes(io: Io): Command {
  return new Command('hashes')
    .description('Count the users by the format of their password hash')
    .action(({ config, json }: Options) =>
      withUsers(io, config, async users => {
        const counts = await users.hashes()
        await print(io.stdout, [json ? `${JSON.stringify({ hashes: counts })}\n` : hashesAsText(counts)])
      }),
    )
}

// Loads the modules for stores and hashing only when a command runs, because the help texts do not need them.

const withUsers: WithUsers = async (...call) => (await import('./with-users.ts')).withUsers(...call)

async function readNewPassword(io: Io, { passwordStdin }: PasswordOption): Promise<string> {
  const { readPassword } = await import('./prompt.ts')
  return readPassword(io, passwordStdin ? 'stdin' : 'prompt')
}
