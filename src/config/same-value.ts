// Compares two values of a configuration.
import { isDeepStrictEqual } from 'node:util'

/** Ignores prototypes: parsed objects have none, but assembled objects do. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isDeepStrictEqual(structuredClone(one), structuredClone(other))
}
