// The settings of a run of the drills. With `--short`, each drill takes only as long as a test.
import { parseArgs } from 'node:util'

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

/** Returns pseudo-random numbers from 0 to 1. The same seed gives the same numbers. */
export const random = createRandom(seed)

/**
 * Returns the number in the environment variable `name`. If it is not set, returns `short` with `--short`, and `long`
 * without it.
 */
export function setting(name: string, long: number, short: number): number {
  return Number(process.env[name] ?? (isShort ? short : long))
}

/** Returns the pseudo-random generator mulberry32. */
function createRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
