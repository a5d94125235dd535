// Clients that use up what free users have left, at several replicas, whatever fails on the way.
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const clients = 48
/** Without one use that passes or is refused: a store that is down is back long before. */
const patienceMs = 60_000

const agent = new Agent({ keepAlive: true, maxSockets: 64 })

/**
 * Asks for every user in turn until each was refused.
 * @param {import('./replicas.mjs').Replica[]} replicas entries may be replaced meanwhile
 * @param {readonly string[]} tokens of one user each
 * @param {number} uses that each has left
 */
export function takeUses(replicas, tokens, uses) {
  const unspent = new Set(tokens)
  let [next, passed, failed, decidedAt] = [0, 0, 0, performance.now()]
  const client = async () => {
    while (unspent.size > 0) {
      if (performance.now() - decidedAt > patienceMs)
        throw new Error(`${unspent.size} users wait for a decision`)
      if (passed > tokens.length * uses * 2) throw new Error(`${unspent.size} users are never refused`)
      const token = [...unspent][next % unspent.size] ?? ''
      next += 1
      const status = await takeUse(replicas[next % replicas.length]?.port ?? 0, token)
      if (status === 200 || status === 429) {
        decidedAt = performance.now()
        if (status === 200) passed += 1
        else unspent.delete(token)
      } else {
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
