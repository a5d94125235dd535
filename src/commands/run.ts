// The command line as a function: which commands there are, and what they exit with (CONTRACT §1).
import { Command, CommanderError } from 'commander'
import { packageFacts } from '../package-facts.ts'
import { checkCommand } from './check.ts'
import { explainCommand } from './explain.ts'
import type { Io } from './io.ts'
import { keysCommand } from './keys.ts'
import { migrateCommand } from './migrate.ts'
import { schemaCommand } from './schema.ts'
import { startCommand } from './start.ts'
import { testCommand } from './test.ts'
import { usersCommand } from './users.ts'

/**
 * Runs one command line.
 * @param words without the names of node and the script
 * @returns the exit code: 0, 1 where a command failed, 2 for a bad command line or configuration
 */
export async function run(words: readonly string[], io: Io): Promise<number> {
  try {
    await program(io).parseAsync(words, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return exitCodeOf(error)
    io.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`)
    return 1
  }
}

function program(io: Io): Command {
  const { version, description } = packageFacts()
  const peage = new Command('peage')
    .description(description)
    .version(version)
    .exitOverride()
    .configureOutput({
      writeOut: text => io.stdout.write(text),
      writeErr: text => io.stderr.write(text),
    })
  for (const command of [
    startCommand(io),
    checkCommand(io),
    explainCommand(io),
    testCommand(io),
    migrateCommand(io),
    schemaCommand(io),
    usersCommand(io),
    keysCommand(io),
  ]) {
    peage.addCommand(command)
    inherit(peage, command)
  }
  return peage
}

/** commander hands its settings down to commands that it makes itself, not to those that are added. */
function inherit(parent: Command, command: Command): void {
  command.copyInheritedSettings(parent)
  for (const inner of command.commands) inherit(command, inner)
}

/** commander's own errors are all about the command line, and exit 1 where nobody says otherwise. */
function exitCodeOf({ code, exitCode }: CommanderError): number {
  return exitCode !== 0 && code.startsWith('commander.') ? 2 : exitCode
}
