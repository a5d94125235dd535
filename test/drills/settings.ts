// The settings of a run of the drills. With `--short`, each drill takes only as long as a test.
import { parseArgs } from 'node:util'
import { createRandom } from '../support/random.ts'

const { values, positionals } = parseArgs({
  options: {
    list: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
  allowPositionals: true,
})

export const names = positionals
export const isList = values.list
export const isShort = values.short
export const seed = Number(values.seed)

/** Returns a random integer that is at least 0 and less than the argument. The same seed gives the same integers. */
export const randomBelow = createRandom(seed)

/** Returns a pseudo-random number from 0 (inclusive) to 1 (exclusive). */
export const random = () => randomBelow(2 ** 32) / 2 ** 32

/**
 * Returns the number in the environment variable `name`. If this variable is not set, returns `short` in a run with
 * `--short`, and `long` in any other run.
 */
export function setting(name: string, long: number, short: number): number {
  return Number(process.env[name] ?? (isShort ? short : long))
}
