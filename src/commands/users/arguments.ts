// Arguments and options of `peage users …`: which user, and where the password comes from.
import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { isFindableEmail, isStorableEmail, normalizeEmail } from '../../accounts/email.ts'
import type { Io } from '../io.ts'
import type { UserRef } from './administration.ts'

/** A subcommand whose first argument is a user. */
export function userCommand(name: string, description: string): Command {
  const user = new Argument('<user>', 'an id or an email').argParser(readUser)
  return new Command(name).description(description).addArgument(user)
}

/** @returns the email of a new account, as it is stored */
export function readNewEmail(text: string): string {
  const email = readEmail(text)
  if (isStorableEmail(email)) return email
  throw new InvalidArgumentError('It has an invisible character, for example a zero-width space.')
}

/** @returns an email that an account may have, also an account of version 0.1 */
export function readEmail(text: string): string {
  const email = normalizeEmail(text)
  if (isFindableEmail(email)) return email
  throw new InvalidArgumentError('It must be an email: with an @, and at most 254 characters.')
}

export interface PasswordOption {
  readonly passwordStdin?: true
}

/** An option, never an argument: the command line ends up in the shell's history and in `ps`. */
export function passwordOption(): Option {
  return new Option('--password-stdin', 'read the password from standard input')
}

/** Called before anything is opened. @throws CommanderError (exit 2) if standard input is no terminal */
export function requireTerminal({ stdin }: Io, command: Command, instead: string): void {
  if (!stdin.isTTY) command.error(`error: there is no terminal to ask on: ${instead}`, { exitCode: 2 })
}

export function readUser(text: string): UserRef {
  if (/^\d+$/.test(text) && Number.isSafeInteger(Number(text))) return { id: Number(text) }
  const email = normalizeEmail(text)
  if (isFindableEmail(email)) return { email }
  throw new InvalidArgumentError('It must be an id such as 42, or an email.')
}
