// Defines `peage plans …`, which shows the plans and moves users between them.
import { Argument, Command } from 'commander'
import type { Plan } from '../../users/user.ts'
import { type ConfigOption, withConfigOption } from '../config-option.ts'
import type { Io } from '../io.ts'
import { print } from '../print.ts'
import { readPlanName, UnknownPlan } from '../users/unknown-plan.ts'
import type { WithUsers } from '../users/with-users.ts'
import { plansAsTable } from './print-plans.ts'

export function plansCommand(io: Io): Command {
  const plans = new Command('plans').description('Show the plans, and move users between them')
  for (const command of [list(io), move(io)]) {
    plans.addCommand(withConfigOption(command).option('--json', 'print JSON'))
  }
  return plans
}

interface Options extends ConfigOption {
  readonly json?: true
}

function list(io: Io): Command {
  return new Command('list')
    .description('List the plans with their numbers of users')
    .action(({ config, json }: Options) =>
      withUsers(io, config, async users => {
        const listing = await users.plans()
        await print(io.stdout, [json ? `${JSON.stringify(listing)}\n` : plansAsTable(listing)])
        if (listing.unknown === null) io.stderr.write('the users were not counted within 1 s\n')
      }),
    )
}

function move(io: Io): Command {
  return new Command('move')
    .description('Move every user of one plan to another plan; can be repeated after an interruption')
    .addArgument(
      new Argument('<from>', 'current plan of the users; the plan does not have to be configured').argParser(
        readPlanName,
      ),
    )
    .addArgument(new Argument('<to>', 'new plan').argParser(readPlanName))
    .option('--yes', 'move without asking for confirmation')
    .action((from: Plan, to: Plan, options: Options & { yes?: true }, command: Command) => {
      if (from === to) command.error('error: both plans are the same', { exitCode: 2 })
      if (!options.yes && !io.stdin.isTTY)
        throw new Error('cannot prompt without a terminal; use --yes. No user was moved.')
      return withUsers(
        io,
        options.config,
        async users => {
          const { plans, unknown } = await users.plans()
          const names = plans.map(({ name }) => name)
          // If a gateway is running, `plans` contains its plans. They may differ from the plans in the file.
          if (!names.includes(to)) throw new UnknownPlan(to, names)
          const known = [...plans, ...(unknown ?? [])].find(({ name }) => name === from)?.users
          // `unknown` is null if the users could not be counted in time.
          const count = unknown === null ? undefined : (known ?? 0)
          const who = count === undefined ? 'every user' : `${count} user${count === 1 ? '' : 's'}`
          const { confirm } = await import('../users/prompt.ts')
          if (!options.yes && !(await confirm(io, `Move ${who} from plan ${from} to plan ${to}?`)))
            throw new Error('no user was moved')
          let moved = 0
          for await (const more of users.movePlan(from, to)) {
            moved += more
            if (more > 0) io.stderr.write(`moved ${moved}${count === undefined ? '' : ` of ${count}`}\n`)
          }
          const sentence = `${moved} user${moved === 1 ? ' was' : 's were'} moved from plan ${from} to plan ${to}`
          await print(io.stdout, [`${options.json ? JSON.stringify({ from, to, moved }) : sentence}\n`])
        },
        to,
      )
    })
}

/** Loads the modules for stores only when a command runs, because the help texts do not need them. */
const withUsers: WithUsers = async (...call) => (await import('../users/with-users.ts')).withUsers(...call)
