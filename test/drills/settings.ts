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

/** Returns random integers. The same seed gives the same integers. */
export const randomBelow = createRandom(seed)

/** Returns pseudo-random numbers from 0 to 1. */
export const random = () => randomBelow(2 ** 32) / 2 ** 32

/**
 * Returns the number in the environment variable `name`. If it is not set, returns `short` with `--short`, and `long`
 * without it.
 */
export function setting(name: string, long: number, short: number): number {
  return Number(process.env[name] ?? (isShort ? short : long))
}
