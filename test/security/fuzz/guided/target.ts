// What a target of the guided runs is: a parser that strangers reach, where its inputs begin, and what must hold.

export interface Target {
  /** What mutations begin from; like all inputs one character for each byte. */
  readonly seeds: readonly string[]
  /** Words of its language, which chance would not spell. */
  readonly dictionary: readonly string[]
  /** Bytes of the longest input. */
  readonly maxLength: number
  /** Milliseconds of this process's CPU that one input may take; tried three times before it is a violation. */
  readonly maxMs: number
  /** Names of the scripts whose coverage counts. */
  readonly covers: RegExp
  /**
   * Tries one input.
   * @returns how it came out, in a few words: an input with a new outcome is kept like one that reaches new code
   * @throws Violation where what it promises does not hold; whatever else it throws is one too
   */
  run(input: string): string | Promise<string>
  /** Forgets what it remembers of former inputs, so that the next one takes the whole way. */
  forget?(): void
  close?(): Promise<void>
}

/** A promise that was not kept. */
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
