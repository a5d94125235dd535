// Describes mutations as lists of numbers, because fast-check shrinks such lists well.
import fc from 'fast-check'

export interface Operation {
  /** Selects a function from a table of mutations. */
  readonly kind: number
  /** The position in the text, taken modulo its length. */
  readonly at: number
  /** The index of the piece to insert, taken modulo the length of the list of pieces. */
  readonly pick: number
}

/** Generates a list of up to `most` operations. */
export function operations(most: number): fc.Arbitrary<Operation[]> {
  return fc.array(fc.record({ kind: fc.nat(999), at: fc.nat(999), pick: fc.nat(999) }), { maxLength: most })
}

export function pickFrom<T>(list: readonly T[], pick: number): T {
  return list[pick % list.length] as T
}

const bytes = [
  '\0',
  '\t',
  ' ',
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\x0b',
  '\x7f',
  '\xa0',
  '\xff',
  ':',
  ',',
  ';',
  '_',
]

/** Mutations of bytes: insertions, deletions, duplications, and changed line ends, colons and numbers. */
const byteKinds: ((text: string, at: number, pick: number) => string)[] = [
  (text, at, pick) => text.slice(0, at) + pickFrom(bytes, pick) + text.slice(at),
  (text, at, pick) => text.slice(0, at) + String.fromCharCode(pick % 256) + text.slice(at + 1),
  (text, at, pick) => text.slice(0, at) + text.slice(at + 1 + (pick % 4)),
  (text, at, pick) => text.slice(0, at + (pick % 40)) + text.slice(at),
  (text, at, pick) =>
    nthReplaced(text, /\r\n/g, at, pickFrom(['\n', '\r', '\r\r\n', '\n\r', '\r\n ', '\r\n\t'], pick)),
  (text, at, pick) =>
    nthReplaced(text, /: ?/g, at, pickFrom([' : ', ':', '\t:', ':\t', ':\r\n ', '', '::'], pick)),
  (text, at, pick) =>
    nthReplaced(text, /\d+/g, at, pickFrom(['0', '-1', '+5', '0x5', '00', '5,5', '1e9'], pick)),
]

/** Applies the operations to a text in latin1. */
export function mutateBytes(text: string, steps: readonly Operation[]): string {
  return steps.reduce(
    (mutated, { kind, at, pick }) =>
      (byteKinds[kind % byteKinds.length] ?? String)(mutated, at % (mutated.length + 1), pick),
    text,
  )
}

function nthReplaced(text: string, pattern: RegExp, at: number, replacement: string): string {
  const matches = [...text.matchAll(pattern)]
  const match = matches[at % Math.max(1, matches.length)]
  if (match === undefined) return text
  return text.slice(0, match.index) + replacement + text.slice(match.index + match[0].length)
}
