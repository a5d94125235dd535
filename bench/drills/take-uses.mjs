// Clients that use up what free users have left, at several replicas, whatever fails on the way.
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const clients = 48
/** A store that is down is back long before. */
const patienceMs = 60_000

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/**
 * Asks for every user in turn until each was refused.
 * @param {import('./replicas.mjs').Replica[]} replicas entries may be replaced meanwhile
 * @param {readonly string[]} tokens of one user each
 */
export function takeUses(replicas, tokens) {
  const unspent = new Set(tokens)
  const deadline = performance.now() + patienceMs
  let [next, failed] = [0, 0]
  const client = async () => {
    while (unspent.size > 0) {
      if (performance.now() > deadline) throw new Error(`${unspent.size} users are never refused`)
      const token = [...unspent][next % unspent.size] ?? ''
      next += 1
      const status = await takeUse(replicas[next % replicas.length]?.port ?? 0, token)
      if (status === 429) unspent.delete(token)
      else if (status !== 200) {
        failed += 1
        await sleep(20)
      }
    }
  }
  const done = Promise.all(Array.from({ length: clients }, client))
  // It is waited for later.
  done.catch(() => {})
  return {
    /** @returns {Promise<{ failed: number }>} requests that were neither passed nor refused as spent */
    async whenSpent() {
      await done
      return { failed }
    },
  }
}

/** @param {number} port @param {string} token @returns {Promise<number>} the status; 0 where there was no answer */
export const takeUse = (port, token) =>
  new Promise(resolve => {
    const headers = { authorization: `Bearer ${token}` }
    request({ host: '127.0.0.1', port, path: '/daily/1', headers, agent })
      .on('response', answer => {
        answer.on('error', () => resolve(0)).on('end', () => resolve(answer.statusCode ?? 0))
        answer.resume()
      })
      .on('error', () => resolve(0))
      .end()
  })
