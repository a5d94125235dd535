// Defines arguments and options of `peage users …`: the user, the key, and the source of the password.
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { isFindableEmail, isStorableEmail, normalizeEmail } from '../../accounts/email.ts'
import { isKeyId } from '../../identity/api-keys/api-key-store.ts'
import type { Io } from '../io.ts'
import type { UserRef } from './administration.ts'

/** Creates a subcommand whose first argument is a user. */
export function userCommand(name: string, description: string): Command {
  const user = new Argument('<user>', 'ID or email').argParser(readUser)
  return new Command(name).description(description).addArgument(user)
}

/** Creates the optional argument for one API key. */
export function keyArgument(): Argument {
  return new Argument('[id]', 'ID of the API key; if omitted, all keys').argParser(readKeyId)
}

function readKeyId(text: string): string {
  if (isKeyId(text)) return text
  throw new InvalidArgumentError('It must be the ID of an API key. Run peage users keys to see the IDs.')
}

/** @returns the normalized email of a new account */
export function readNewEmail(text: string): string {
  const email = readEmail(text)
  if (isStorableEmail(email)) return email
  throw new InvalidArgumentError('It contains an invisible character, for example a zero-width space.')
}

/** @returns the normalized email; emails that only version 0.1 accepted are valid too */
export function readEmail(text: string): string {
  const email = normalizeEmail(text)
  if (isFindableEmail(email)) return email
  throw new InvalidArgumentError('It must be an email with an @ and at most 254 characters.')
}

export interface PasswordOption {
  readonly passwordStdin?: true
}

/** The password is never an argument, because the command line is visible in the shell's history and in `ps`. */
export function passwordOption(): Option {
  return new Option('--password-stdin', 'read the password from standard input')
}

/**
 * Call this before the database is opened.
 * @throws CommanderError (exit code 2) if standard input is not a terminal
 */
export function requireTerminal({ stdin }: Io, command: Command, instead: string): void {
  if (!stdin.isTTY) command.error(`error: cannot prompt without a terminal; ${instead}`, { exitCode: 2 })
}

export function readUser(text: string): UserRef {
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return { id: Number(text) }
  const email = normalizeEmail(text)
  if (isFindableEmail(email)) return { email }
  throw new InvalidArgumentError('It must be an ID such as 42, or an email.')
}
