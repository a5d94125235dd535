// Defines `peage users …`, which administers accounts.
import { Argument, Command, Option } from 'commander'
import { type Plan, plans } from '../../users/user.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserFilter, UserRef } from './administration.ts'
import {
  type PasswordOption,
  passwordOption,
  readEmail,
  readNewEmail,
  requireTerminal,
  userCommand,
} from './arguments.ts'
import { emailInUse, findUser, noSuchUser, orNoSuchUser, report } from './errors.ts'
import {
  sessionsAsJson,
  sessionsAsText,
  userAsText,
  userLabel,
  usersAsJson,
  usersAsTable,
} from './print-users.ts'
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
    exportation(io),
    deletion(io),
    sessions(io),
    revokeSessions(io),
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
    .addOption(new Option('--plan <plan>', 'only users on this plan').choices(plans))
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
      await print(io.stdout, [json ? `${JSON.stringify(user)}\n` : userAsText(user)])
    }),
  )
}

function create(io: Io): Command {
  return new Command('create')
    .description('Create a user; asks for the password')
    .addArgument(new Argument('<email>', 'email of the new user').argParser(readNewEmail))
    .addOption(new Option('--plan <plan>', 'plan of the new user').choices(plans).default('free'))
    .addOption(passwordOption())
    .action((email: string, options: Options & PasswordOption & { plan: Plan }, command: Command) => {
      if (!options.passwordStdin) requireTerminal(io, command, 'use --password-stdin')
      return withUsers(io, options.config, async users => {
        const existing = await users.find({ email })
        if (existing !== undefined) throw emailInUse(existing)
        const user = await users.create(email, await readNewPassword(io, options), options.plan)
        if (user === 'email_in_use') throw emailInUse(await findUser(users, { email }))
        await report(io, options, user, `${userLabel(user)} was created on plan ${user.plan}`)
      })
    })
}

function setPlan(io: Io): Command {
  return userCommand('set-plan', 'Change the plan of a user')
    .addArgument(new Argument('<plan>', 'new plan').choices(plans))
    .action((ref: UserRef, plan: Plan, options: Options) =>
      withUsers(io, options.config, async users => {
        const { id } = await findUser(users, ref)
        const user = orNoSuchUser(await users.update(id, { plan }), ref)
        await report(io, options, user, `${userLabel(user)} is now on plan ${user.plan}`)
      }),
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
  return userCommand('reset-usage', 'Reset the daily usage of a user').action(
    (ref: UserRef, options: Options) =>
      withUsers(io, options.config, async users => {
        const { id } = await findUser(users, ref)
        const user = orNoSuchUser(await users.resetUsage(id), ref)
        await report(io, options, user, `the daily usage of ${userLabel(user)} was reset`)
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

function exportation(io: Io): Command {
  return userCommand('export', 'Print all data stored about a user, as JSON').action(
    (ref: UserRef, { config }: Options) =>
      withUsers(io, config, async users => {
        const { id } = await findUser(users, ref)
        const exported = await users.export(id)
        if (exported === undefined) throw noSuchUser(ref)
        await print(io.stdout, [`${JSON.stringify(exported, null, 2)}\n`])
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

// Loads the modules for stores and hashing only when a command runs, because the help texts do not need them.

const withUsers: WithUsers = async (...call) => (await import('./with-users.ts')).withUsers(...call)

async function readNewPassword(io: Io, { passwordStdin }: PasswordOption): Promise<string> {
  const { readPassword } = await import('./prompt.ts')
  return readPassword(io, passwordStdin ? 'stdin' : 'prompt')
}
