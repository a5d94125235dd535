// Requests of free users, several of one at once until nothing is left and then again, and of paying users whose rate is limited.
import { Agent, request } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { random } from './settings.mjs'

/** Free uses of a day. */
export const limit = 5
const freeLanes = 6
const payingLanes = 4
const pauseMs = 40
/** Of a free user, at the same moment. */
const together = 3

const agent = new Agent({ keepAlive: true, maxSockets: 128 })

/** @typedef {{ kind: 'free' | 'paying', status: number, at: number, tookMs: number }} Answer */

/**
 * @param {readonly import('./replicas.mjs').Replica[]} replicas
 * @param {{ free: readonly string[], paying: readonly string[] }} tokens of one user each
 */
export function startWork(replicas, { free, paying }) {
  /** @type {Answer[]} */
  let answers = []
  let isOver = false
  let [turn, next] = [0, 0]
  // On a machine that is busy with something else a stall may be ours: it must not pass for the gateway's.
  const own = monitorEventLoopDelay({ resolution: 5 })
  own.enable()

  /** @param {Answer['kind']} kind @param {string} token */
  async function ask(kind, token) {
    turn += 1
    const at = performance.now()
    const status = await get(replicas[turn % replicas.length]?.port ?? 0, `/${kind}/1`, token)
    answers.push({ kind, status, at, tookMs: performance.now() - at })
    return status
  }

  /** Each user's uses are taken by one lane; what was spent is asked for again, by any. */
  async function takeUses() {
    while (!isOver && next < free.length) {
      const token = free[next] ?? ''
      next += 1
      for (let isSpent = false; !isSpent && !isOver; ) {
        const statuses = await Promise.all(Array.from({ length: together }, () => ask('free', token)))
        isSpent = statuses.includes(429)
        const former = free[Math.floor(random() * next)] ?? ''
        await ask('free', former)
        await sleep(pauseMs)
      }
    }
  }

  async function pay(lane) {
    for (let at = lane; !isOver; at += payingLanes) {
      await ask('paying', paying[at % paying.length] ?? '')
      await sleep(pauseMs / 2)
    }
  }

  const running = [
    ...Array.from({ length: freeLanes }, takeUses),
    ...Array.from({ length: payingLanes }, (_, lane) => pay(lane)),
  ]
  return {
    /** Since it was asked last. @returns {Answer[]} */
    take() {
      const taken = answers
      answers = []
      return taken
    },
    /** Whether there are free users left to begin with. */
    isGoing: () => next < free.length,
    /** For how long this process stood still, at most, in milliseconds. */
    ownStall: () => own.max / 1e6,
    async stop() {
      isOver = true
      await Promise.all(running)
    },
  }
}

/** @returns {Promise<number>} the status; 0 where there was no answer */
const get = (port, path, token) =>
  new Promise(resolve => {
    const headers = { authorization: `Bearer ${token}` }
    request({ host: '127.0.0.1', port, path, headers, agent })
      .on('response', answer => {
        answer.on('error', () => resolve(0)).on('end', () => resolve(answer.statusCode ?? 0))
        answer.resume()
      })
      .on('error', () => resolve(0))
      .end()
  })
