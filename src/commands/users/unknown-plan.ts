// Refuses the name of a plan that is not configured.
import { CommanderError, InvalidArgumentError } from 'commander'
import { nearest } from '../../config/did-you-mean.ts'
import { isPlanName, type Plan } from '../../users/user.ts'
import type { Io } from '../io.ts'

/** The error if a command names a plan that is not configured. */
export class UnknownPlan extends Error {
  override readonly name = 'UnknownPlan'

  /** @param configured the configured plans; empty if they are not known */
  constructor(plan: Plan, configured: readonly Plan[]) {
    const similar = nearest(plan, configured)
    super(
      [
        `the plan '${plan}' is not configured.`,
        ...(configured.length === 0 ? [] : [`Allowed choices are ${configured.join(', ')}.`]),
        ...(similar === undefined ? [] : [`Did you mean ${similar}?`]),
      ].join(' '),
    )
  }
}

/** Prints the error as commander prints an invalid argument. @returns the error of the command, with exit code 2 */
export function toCommanderError({ stderr }: Io, { message }: UnknownPlan): CommanderError {
  stderr.write(`error: ${message}\n`)
  return new CommanderError(2, 'peage.plan', message)
}

/** Reads the name of a plan, but does not check whether the plan is configured. */
export function readPlanName(text: string): Plan {
  if (isPlanName(text)) return text
  throw new InvalidArgumentError(
    'The name of a plan has at most 32 lower-case letters, digits, _ and -, and begins with a letter.',
  )
}
