// Whether two parts of configurations say the same.
import { isDeepStrictEqual } from 'node:util'

/** Whatever they were made by: what was read has no prototypes, what was put together has. */
export function isSame(one: unknown, other: unknown): boolean {
  return isDeepStrictEqual(one, other) || isDeepStrictEqual(structuredClone(one), structuredClone(other))
}
