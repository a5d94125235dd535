// A relay in front of Postgres that says what has passed.
import { once } from 'node:events'
import { startRelay } from './relay.mjs'

/** @param {string} target a server's URL */
export async function startCountingRelay(target) {
  const { child, url, stop } = await startRelay('serve-counting-relay.mjs', target)
  return {
    url,
    /**
     * Since it started: statements by their text, look-ups of users, and the most of one user that were under way at once.
     * @returns {Promise<{ statements: Record<string, number>, lookUps: number, mostOfOne: number }>}
     */
    async counts() {
      child.send('counts')
      const [counts] = await once(child, 'message')
      return counts
    },
    stop,
  }
}
