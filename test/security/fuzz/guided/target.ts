// A target of guided fuzzing: a parser of untrusted input, inputs to start with, and promises about the results.

export interface Target {
  /** The inputs to start with. As in all inputs, each character is one byte. */
  readonly seeds: readonly string[]
  /** Words of the input language that random bytes would not form. */
  readonly dictionary: readonly string[]
  /** The maximum length of an input in bytes. */
  readonly maxLength: number
  /** The CPU time limit for one input in milliseconds. If an input exceeds it three times, this is a violation. */
  readonly maxMs: number
  /** Matches the URLs of the scripts whose coverage counts. */
  readonly covers: RegExp
  /**
   * Runs one input.
   * @returns the outcome in a few words. If the outcome is new, the input is kept, just like an input that reaches new
   * code.
   * @throws Violation if a promise is broken. Any other error also counts as a violation.
   */
  run(input: string): string | Promise<string>
  /** Clears the caches of the target. Without this, the next input might not run the code behind a cache. */
  forget?(): void
  close?(): Promise<void>
}

/** A broken promise of a target. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/** Checks a promise. @throws Violation with the title and the details as JSON if `holds` is false */
export function promise(holds: boolean, title: string, ...details: unknown[]): asserts holds {
  if (!holds) throw new Violation([title, ...details.map(detail => JSON.stringify(detail))].join(' '))
}

export function bytesOf(input: string): Buffer {
  return Buffer.from(input, 'latin1')
}
