// Compares parts of configurations by value.
import { isDeepStrictEqual } from 'node:util'

/** Regardless of prototypes: parsed objects have none, assembled ones do. */
export function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isDeepStrictEqual(structuredClone(one), structuredClone(other))
}
