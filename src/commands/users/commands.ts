// `peage users …`: accounts in the hands of operators (CONTRACT §1).
import { Argument, Command, Option } from 'commander'
import { createPasswords } from '../../accounts/password.ts'
import { type Plan, plans } from '../../users/user.ts'
import { type ConfigurationOption, withConfiguration } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import type { UserFilter, UserKey } from './administration.ts'
import { commandOfUser, needTerminal, type PasswordOption, passwordOption, readEmail } from './arguments.ts'
import { emailInUse, existing, found, noSuchUser, putOnPlan, report } from './errors.ts'
import { nameOf, sessionsAsText, userAsText, usersAsJson, usersAsTable } from './print.ts'
import { confirm, readPassword } from './prompt.ts'
import { administer, administerRecords } from './with-users.ts'

export function usersCommand(io: Io): Command {
  const users = new Command('users').description('administer accounts; USER is an id or an email')
  for (const command of [
    list(io),
    show(io),
    create(io),
    setPlan(io),
    setPassword(io),
    resetUsage(io),
    activation(io, 'activate', 1),
    activation(io, 'deactivate', 0),
    deletion(io),
    sessions(io),
    revokeSessions(io),
  ]) {
    users.addCommand(withConfiguration(command).option('--json', 'print JSON'))
  }
  return users
}

interface Options extends ConfigurationOption {
  readonly json?: true
}

function list(io: Io): Command {
  return new Command('list')
    .description('show all users, or those that fit')
    .option('--email <email>', 'only the one with this email', readEmail)
    .addOption(new Option('--plan <plan>', 'only those on this plan').choices(plans))
    .action(({ config, json, ...filter }: Options & UserFilter) =>
      administer(io, config, users => {
        const pages = users.list(filter)
        return print(io.stdout, json ? usersAsJson(pages) : usersAsTable(pages))
      }),
    )
}

function show(io: Io): Command {
  return commandOfUser('show', 'show one user').action((who: UserKey, { config, json }: Options) =>
    administer(io, config, async users => {
      const user = await existing(users, who)
      await print(io.stdout, [json ? `${JSON.stringify(user)}\n` : userAsText(user)])
    }),
  )
}

function create(io: Io): Command {
  return new Command('create')
    .description('create a user; asks for the password')
    .addArgument(new Argument('<email>').argParser(readEmail))
    .addOption(new Option('--plan <plan>', 'the plan to begin with').choices(plans).default('free'))
    .addOption(passwordOption())
    .action((email: string, options: Options & PasswordOption & { plan: Plan }, command: Command) => {
      if (!options.passwordStdin) needTerminal(io, command, 'pass the password with --password-stdin')
      return administerRecords(io, options.config, async (records, { auth }) => {
        const holder = await records.find({ email })
        if (holder !== undefined) throw emailInUse(holder)
        const password = await readPassword(io, options.passwordStdin ? 'stdin' : 'prompt')
        const hash = await (await createPasswords(auth.hashing)).hash(password)
        const created = await records.create(email, hash)
        if (created === 'email_in_use') throw emailInUse(await existing(records, { email }))
        const user = await putOnPlan(records, created, options.plan)
        await report(io, options, user, `${nameOf(user)} is created, on plan ${user.plan}`)
      })
    })
}

function setPlan(io: Io): Command {
  return commandOfUser('set-plan', 'change the plan of a user')
    .addArgument(new Argument('<plan>').choices(plans))
    .action((who: UserKey, plan: Plan, options: Options) =>
      administer(io, options.config, async users => {
        const { id } = await existing(users, who)
        const user = found(await users.update(id, { plan }), who)
        await report(io, options, user, `${nameOf(user)} is on plan ${user.plan}`)
      }),
    )
}

function setPassword(io: Io): Command {
  return commandOfUser('set-password', 'change the password of a user, which also revokes every session')
    .addOption(passwordOption())
    .action((who: UserKey, options: Options & PasswordOption, command: Command) => {
      if (!options.passwordStdin) needTerminal(io, command, 'pass the password with --password-stdin')
      return administerRecords(io, options.config, async (records, { auth }) => {
        const user = await existing(records, who)
        const password = await readPassword(io, options.passwordStdin ? 'stdin' : 'prompt')
        const hash = await (await createPasswords(auth.hashing)).hash(password)
        if (!(await records.setPassword(user.id, hash))) throw noSuchUser(who)
        await report(io, options, user, `${nameOf(user)} has a new password; every session is revoked`)
      })
    })
}

function resetUsage(io: Io): Command {
  return commandOfUser('reset-usage', 'give a user the uses of the day back').action(
    (who: UserKey, options: Options) =>
      administerRecords(io, options.config, async records => {
        const { id } = await existing(records, who)
        if (!(await records.resetUsage(id))) throw noSuchUser(who)
        const user = await existing(records, { id })
        await report(io, options, user, `${nameOf(user)} has used nothing today`)
      }),
  )
}

function activation(io: Io, name: string, is_active: 0 | 1): Command {
  const effect = is_active === 1 ? 'let a user in again' : 'keep a user out, and keep all that is theirs'
  return commandOfUser(name, effect).action((who: UserKey, options: Options) =>
    administer(io, options.config, async users => {
      const { id } = await existing(users, who)
      const user = found(await users.update(id, { is_active }), who)
      await report(io, options, user, `${nameOf(user)} is ${user.is_active === 1 ? 'active' : 'inactive'}`)
    }),
  )
}

function deletion(io: Io): Command {
  return commandOfUser('delete', 'delete a user and all that is theirs')
    .option('--yes', 'do not ask')
    .action((who: UserKey, options: Options & { yes?: true }, command: Command) => {
      if (!options.yes) needTerminal(io, command, 'add --yes if you mean it')
      return administerRecords(io, options.config, async records => {
        const user = await existing(records, who)
        if (!options.yes && !(await confirm(io, `Delete ${nameOf(user)} and all that is theirs?`))) {
          throw new Error('nothing was deleted')
        }
        if (!(await records.delete(user.id))) throw noSuchUser(who)
        await report(io, options, user, `${nameOf(user)} is deleted`)
      })
    })
}

function sessions(io: Io): Command {
  return commandOfUser('sessions', 'show the active sessions of a user').action(
    (who: UserKey, { config, json }: Options) =>
      administer(io, config, async users => {
        const { id } = await existing(users, who)
        const active = await users.sessions(id)
        await print(io.stdout, [json ? `${JSON.stringify({ sessions: active })}\n` : sessionsAsText(active)])
      }),
  )
}

function revokeSessions(io: Io): Command {
  return commandOfUser(
    'revoke-sessions',
    'revoke every session of a user; access tokens end by themselves',
  ).action((who: UserKey, options: Options) =>
    administer(io, options.config, async users => {
      const user = await existing(users, who)
      if (!(await users.revokeSessions(user.id))) throw noSuchUser(who)
      await report(io, options, user, `every session of ${nameOf(user)} is revoked`)
    }),
  )
}
