// The rounds: in each one every contender has its slice, in reversed order every other time.
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * @typedef {object} Ready
 * @property {string} name
 * @property {import('./processes.mjs').Running} running
 */

/** @typedef {Map<string, import('./load.mjs').Measured>} Round by the contender's name */

/**
 * @param {readonly Ready[]} contenders
 * @param {object} options
 * @param {number} options.rounds that count
 * @param {number} options.time milliseconds of a slice
 * @param {number} options.connections
 * @param {number} options.busy share of a core that every contender must have had for its round to count: where
 *   somebody else used the machine, what a request costs is anybody's guess. At most twice `rounds` are run.
 * @param {(round: Round, isKept: boolean) => void} options.onRound
 * @returns {Promise<Round[]>} those that count; all of them where too few do
 */
export async function runRounds(contenders, { rounds, time, connections, busy, onRound }) {
  const load = startLoad()
  try {
    // Compiled code and open connections first: the slices of the rounds warm up for the rest.
    for (const { running } of contenders)
      await load.run({ ...running, connections, warmUp: 500, time: 1_500 })
    const all = []
    const kept = []
    for (let index = 0; index < rounds * 2 && kept.length < rounds; index += 1) {
      /** @type {Round} */
      const round = new Map()
      const order = index % 2 === 0 ? contenders : [...contenders].reverse()
      for (const { name, running } of order) {
        round.set(name, await load.run({ ...running, connections, warmUp: 300, time }))
      }
      const isKept = [...round.values()].every(({ cpu, seconds }) => cpu / seconds >= busy)
      onRound(round, isKept)
      all.push(round)
      if (isKept) kept.push(round)
    }
    return kept.length < rounds ? all : kept
  } finally {
    load.stop()
  }
}

function startLoad() {
  const child = fork(fileURLToPath(new URL('load.mjs', import.meta.url)))
  return {
    /**
     * @param {import('./load.mjs').Slice} slice
     * @returns {Promise<import('./load.mjs').Measured>}
     */
    run({ port, pids, connections, warmUp, time }) {
      return new Promise((resolve, reject) => {
        child.once('message', message => {
          const { result, error } =
            /** @type {{ result?: import('./load.mjs').Measured, error?: string }} */ (message)
          if (result === undefined) reject(new Error(error))
          else resolve(result)
        })
        child.send({ port, pids, connections, warmUp, time })
      })
    },
    stop: () => child.disconnect(),
  }
}
