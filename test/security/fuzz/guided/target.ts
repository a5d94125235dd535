// A target of guided fuzzing consists of a parser of untrusted input, inputs to start with, and promises about results.

export interface Target {
  /** The inputs to start with. As in all inputs, each character is one byte. */
  readonly seeds: readonly string[]
  /** Words that random mutations would hardly ever produce, for example header names. */
  readonly dictionary: readonly string[]
  /** The maximum length of an input in bytes. */
  readonly maxLength: number
  /** The CPU time limit for one input in milliseconds. An input that exceeds the limit in three runs is a violation. */
  readonly maxMs: number
  /** Only the coverage of scripts whose URL matches this pattern is evaluated. */
  readonly covers: RegExp
  /**
   * Runs one input.
   * @returns the outcome in a few words. An input with a new outcome is kept, in the same way as an input that reaches
   * new code.
   * @throws Violation if a promise is broken. Any other error also counts as a violation.
   */
  run(input: string): string | Promise<string>
  /** Clears the caches of the target. Otherwise, a cached result could prevent the next input from running the code. */
  forget?(): void
  close?(): Promise<void>
}

/** The error if a target breaks a promise. */
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
