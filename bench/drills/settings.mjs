// How much a run of the drills does: all of it, or with `--short` as much as a test run has time for.
import { parseArgs } from 'node:util'
import { createRandom } from '../simulation/population.mjs'

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

/** From 0 to 1: the same numbers for the same seed, as far as the drill asks for them in the same order. */
export const random = createRandom(seed)

/**
 * A number of the drills, which the environment may set.
 * @param {string} name of the environment variable @param {number} long @param {number} short with `--short`
 */
export function setting(name, long, short) {
  return Number(process.env[name] ?? (isShort ? short : long))
}
