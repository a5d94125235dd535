// A target of guided fuzzing: a parser of untrusted input, its first inputs, and its promises.

export interface Target {
  /** The first inputs, one character for each byte like all inputs. */
  readonly seeds: readonly string[]
  /** Words of the input language that random bytes would not form. */
  readonly dictionary: readonly string[]
  /** The maximum length of an input in bytes. */
  readonly maxLength: number
  /** The CPU time limit for one input in milliseconds. Three slow tries are a violation. */
  readonly maxMs: number
  /** The names of the scripts whose coverage counts. */
  readonly covers: RegExp
  /**
   * Tries one input.
   * @returns the outcome in a few words; an input with a new outcome is kept like an input that reaches new code
   * @throws Violation if a promise is broken; any other error counts as a violation too
   */
  run(input: string): string | Promise<string>
  /** Clears caches of previous inputs, so that the next input runs all code. */
  forget?(): void
  close?(): Promise<void>
}

/** A broken promise of a target. */
export class Violation extends Error {
  override readonly name = 'Violation'
}

/** @throws Violation unless `holds`; `details` are printed as JSON */
export function promise(holds: boolean, title: string, ...details: unknown[]): asserts holds {
  if (!holds) throw new Violation([title, ...details.map(detail => JSON.stringify(detail))].join(' '))
}

export function bytesOf(input: string): Buffer {
  return Buffer.from(input, 'latin1')
}
