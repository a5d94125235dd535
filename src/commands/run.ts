// Runs a command line: selects the command and determines the exit code.
import { Command, CommanderError } from 'commander'
import { systemClock } from '../clock.ts'
import { packageFacts } from '../version.ts'
import { type ConfigOption, withConfigurationAlone } from './config-option.ts'
import type { Io } from './io.ts'
import { print } from './print.ts'

/** The commands by name, in the order of the help text. Each module is imported only when its command runs. */
const commands: Readonly<Record<string, (io: Io) => Command | Promise<Command>>> = {
  init: async io => (await import('./init.ts')).initCommand(io),
  start: startCommand,
  check: checkCommand,
  explain: async io => (await import('./explain/command.ts')).explainCommand(io),
  test: async io => (await import('./test/command.ts')).testCommand(io),
  migrate: migrateCommand,
  schema: schemaCommand,
  users: async io => (await import('./users/commands.ts')).usersCommand(io),
  plans: async io => (await import('./plans/commands.ts')).plansCommand(io),
  providers: async io => (await import('./providers/commands.ts')).providersCommand(io),
  mail: async io => (await import('./mail/command.ts')).mailCommand(io),
  keys: async io => (await import('./keys/commands.ts')).keysCommand(io),
}

/** @returns the exit code: 0 on success, 1 if a command failed, 2 for an invalid command line or configuration */
export async function run(args: readonly string[], io: Io): Promise<number> {
  // A closed standard error stream is not a failure, because the exit code still shows the result.
  io.stderr.on('error', () => {})
  try {
    const program = await createProgram(args, io)
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return exitCodeOf(error)
    io.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

/**
 * Creates the program with only the command that the first argument names. If the first argument is not a command, the
 * program has all commands, because the help text lists them.
 */
export async function createProgram([first = '']: readonly string[], io: Io): Promise<Command> {
  const { version, description } = packageFacts()
  const peage = new Command('peage')
    .description(description)
    .version(version, '-V, --version', 'show the version')
  for (const name of namesFor(first)) {
    peage.addCommand(await (commands[name] as (io: Io) => Command | Promise<Command>)(io))
  }
  configure(peage, io)
  return peage
}

function namesFor(first: string): readonly string[] {
  if (['-V', '--version'].includes(first)) return []
  return Object.hasOwn(commands, first) ? [first] : Object.keys(commands)
}

/**
 * Configures one command. Every command needs this call, because commander passes settings only to commands that it
 * creates itself.
 */
function configure(command: Command, io: Io): void {
  command.exitOverride().configureOutput({
    writeOut: text => void print(io.stdout, [text]),
    writeErr: text => io.stderr.write(text),
  })
  command.helpOption('-h, --help', 'show this help')
  if (command.commands.length > 0) command.helpCommand('help [command]', 'Show the help of a command')
  for (const inner of command.commands) configure(inner, io)
}

/** Errors of commander itself concern the command line, so the exit code is 2. Commander would use 1. */
function exitCodeOf({ code, exitCode }: CommanderError): number {
  return exitCode !== 0 && code.startsWith('commander.') ? 2 : exitCode
}

function startCommand(io: Io): Command {
  return withConfigurationAlone(new Command('start'))
    .description('Migrate the database and serve requests until SIGTERM or SIGINT')
    .action(async ({ config: file }: ConfigOption) => {
      const { runGateway } = await import('./run-gateway.ts')
      await runGateway(io, file)
    })
}

function checkCommand(io: Io): Command {
  return withConfigurationAlone(new Command('check'))
    .description('Validate the configuration without starting the gateway')
    .action(async ({ config: file }: ConfigOption) => {
      const { warningLinesOf } = await import('../config/diagnostics.ts')
      const { readTracing } = await import('../observability/tracing/open.ts')
      const { fileReader, openConfigFile, orExit } = await import('./read-config.ts')
      const { traces, problems } = readTracing(io.env, fileReader(io))
      const { config, warnings } = orExit(openConfigFile(io, file).load(), io.stdout, problems)
      const lines = [...warningLinesOf(warnings), ...(traces?.warnings ?? []).map(line => `warning: ${line}`)]
      const { routes, upstreams } = config
      const counts = `${count(routes.length, 'route')}, ${count(Object.keys(upstreams).length, 'upstream')}`
      await print(
        io.stdout,
        [...lines, `${file}: ok (${counts})`].map(line => `${line}\n`),
      )
    })
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Applies pending migrations. Several replicas may run this command at the same time. */
function migrateCommand(io: Io): Command {
  return withConfigurationAlone(new Command('migrate'))
    .description('Apply pending migrations and exit')
    .action(async ({ config: file }: ConfigOption) => {
      const { createLogger } = await import('../observability/logger.ts')
      const { createFailureLog } = await import('../storage/failure-log.ts')
      const { openStorage } = await import('../storage/open.ts')
      const { openFolder } = await import('../composition/open-folder.ts')
      const { readConfig } = await import('./read-config.ts')
      const { inPlainWords } = await import('./store-failure.ts')
      const { storage, server } = readConfig(io, file, io.stderr)
      const logger = await createLogger(server.log, io.stderr)
      // Redis has nothing to migrate.
      const stores = { storage: { ...storage, redis: '' } }
      const failureLog = createFailureLog({ logger, clock: systemClock })
      const openAndMigrate = async () => {
        const backing = await openStorage(stores, { logger, failureLog, clock: systemClock }, openFolder)
        return backing.migrate().finally(backing.close)
      }
      const applied = await openAndMigrate().catch(error => {
        throw inPlainWords(error, storage, file)
      })
      await print(io.stdout, [`${applied.length === 0 ? 'up to date' : `applied ${applied.join(', ')}`}\n`])
    })
}

/** Prints the schema that is committed as gateway.schema.json. */
function schemaCommand(io: Io): Command {
  return new Command('schema').description('Print the JSON Schema of gateway.yaml').action(async () => {
    const { jsonSchema } = await import('../config/json-schema.ts')
    await print(io.stdout, [`${JSON.stringify(jsonSchema(), null, 2)}\n`])
  })
}
