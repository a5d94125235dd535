// The rounds: in each one every row has its slice, in reversed order every other time.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { atEnd, throwIfInterrupted } from './cleanup.mjs'

/** @typedef {import('./contender.mjs').Row} Row */
/** @typedef {Map<string, import('./load.mjs').Measured>} Round by the row's name */

/**
 * Milliseconds of load before what counts of a slice. A Node process that stood idle for 45 s has lost memory and caches: it
 * costs three times as much at first, and half as much again after 2 s.
 */
const warmUp = 2_500

/**
 * @typedef {object} Outcome
 * @property {Round[]} rounds those that count; all of them where too few do
 * @property {number} leftOut rounds in which the machine was not ours
 * @property {Round[]} paced at a fixed rate, for the latencies
 * @property {Map<string, string>} failures rows that broke on the way, and how; they are in no round
 */

/**
 * @param {readonly Row[]} rows
 * @param {object} options
 * @param {string} options.base the row without which the others say nothing
 * @param {number} options.rounds that count
 * @param {number} options.time milliseconds of a slice
 * @param {number} options.connections
 * @param {number} options.busy share of a core that every row which can fill one must have had for its round to count:
 *   where somebody else used the machine, what a request costs is anybody's guess. At most twice `rounds` are run.
 * @param {number} options.pacedRounds
 * @param {number} options.perSecond requests in the paced rounds
 * @param {(round: Round, isKept: boolean) => void} options.onRound
 * @returns {Promise<Outcome>}
 */
export async function runRounds(rows, options) {
  const { base, rounds, time, connections: allConnections, busy, pacedRounds, perSecond, onRound } = options
  // One each: code that has been compiled for the answers of all contenders is slow for the fast ones.
  const loads = new Map(rows.map(({ name }) => [name, startLoad()]))
  /** @type {Map<string, string>} */
  const failures = new Map()
  /**
   * @param {number} index
   * @param {{ warmUp: number, time: number, perSecond?: number }} slice
   */
  const runRound = async (index, slice, those = rows) => {
    /** @type {Round} */
    const round = new Map()
    for (const row of index % 2 === 0 ? those : [...those].reverse()) {
      if (failures.has(row.name)) continue
      const { port, pids } = row.running
      const { question, others = [], status, perSecond, connections = allConnections } = row
      const questions = [question, ...others]
      try {
        const measured = await loads
          .get(row.name)
          ?.run({ port, pids, questions, status, connections, perSecond, ...slice })
        if (measured !== undefined) round.set(row.name, measured)
      } catch (error) {
        throwIfInterrupted()
        if (row.name === base) throw error
        failures.set(row.name, error instanceof Error ? error.message : String(error))
      }
    }
    return round
  }
  // Compiled code and open connections first. Code is compiled by use, so the slow need longer.
  /** @type {Map<string, number>} */
  const warm = new Map()
  for (let index = 0; index < 6; index += 1) {
    const isCold = (/** @type {Row} */ { name }) => (warm.get(name) ?? 0) < 8_000
    const slice = { warmUp: 0, time: Math.min(1_500, time) }
    for (const [name, { requests }] of await runRound(index, slice, rows.filter(isCold))) {
      warm.set(name, (warm.get(name) ?? 0) + requests)
    }
  }
  const all = []
  const kept = []
  for (let index = 0; index < rounds * 2 && kept.length < rounds; index += 1) {
    const round = await runRound(index, { warmUp, time })
    const isKept = rows.every(({ name, fillsItsCore }) => {
      const one = round.get(name)
      return one === undefined || !fillsItsCore || one.cpu / one.seconds >= busy
    })
    onRound(round, isKept)
    all.push(round)
    if (isKept) kept.push(round)
  }
  const paced = []
  const paceable = rows.filter(({ connections }) => connections === undefined)
  for (let index = 0; index < pacedRounds; index += 1) {
    paced.push(await runRound(index, { warmUp, time, perSecond }, paceable))
  }
  for (const load of loads.values()) await load.stop()
  const isWhole = kept.length >= rounds
  return { rounds: isWhole ? kept : all, leftOut: all.length - kept.length, paced, failures }
}

/** A load generator in a process of its own. */
export function startLoad() {
  const child = fork(fileURLToPath(new URL('load.mjs', import.meta.url)))
  return {
    /**
     * @param {import('./load.mjs').Slice} slice
     * @returns {Promise<import('./load.mjs').Measured>}
     */
    run(slice) {
      return new Promise((resolve, reject) => {
        const patience = setTimeout(
          () => reject(new Error('the load generator is stuck')),
          slice.time + 60_000,
        )
        const fail = () => {
          clearTimeout(patience)
          reject(new Error('the load generator has ended'))
        }
        child.once('exit', fail)
        child.once('message', message => {
          clearTimeout(patience)
          child.off('exit', fail)
          const { result, error } =
            /** @type {{ result?: import('./load.mjs').Measured, error?: string }} */ (message)
          if (result === undefined) reject(new Error(error))
          else resolve(result)
        })
        if (child.connected) child.send(slice)
        else fail()
      })
    },
    stop: atEnd(() => child.connected && child.disconnect()),
  }
}
