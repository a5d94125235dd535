// Whether two values of a configuration are the same.
import { isDeepStrictEqual } from 'node:util'

/** Regardless of prototypes: parsed objects have none, assembled ones do. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isDeepStrictEqual(structuredClone(one), structuredClone(other))
}
