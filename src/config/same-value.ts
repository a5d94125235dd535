// Compares two values of a configuration.
import { isDeepStrictEqual } from 'node:util'

/** Ignores prototypes. Parsed objects have no prototype, but objects created by the program have one. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isDeepStrictEqual(structuredClone(one), structuredClone(other))
}
