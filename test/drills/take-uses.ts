// Clients that spend the daily uses of free users at several replicas, and continue after failed requests.
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer } from './accounts.ts'
import type { Replica } from './replicas.ts'
import { send } from './subjects.ts'

const clients = 48
/**
 * The maximum time in milliseconds without any response with 200 or 429. A drill that stops a store must start it again
 * within this time.
 */
const patienceMs = 60_000

/**
 * Sends requests of all users in turn until every user has been refused.
 * @param replicas the replicas; a drill may replace entries of the array at any time
 * @param tokens one token for each user
 * @param uses the number of daily uses that each user has left
 */
export function takeUses(
  replicas: readonly Replica[],
  tokens: readonly string[],
  uses: number,
): {
  /** Waits until all uses are spent. @returns the number of requests that got neither a 200 nor a 429 */
  whenSpent(): Promise<{ failed: number }>
} {
  const unspent = new Set(tokens)
  let [next, passed, failed, decidedAt] = [0, 0, 0, performance.now()]
  const client = async () => {
    while (unspent.size > 0) {
      if (performance.now() - decidedAt > patienceMs)
        throw new Error(
          `no response with 200 or 429 for ${patienceMs / 1_000} s; ${unspent.size} users have uses left`,
        )
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
  // This only prevents an unhandled rejection. The error is not lost, because `whenSpent` throws it.
  done.catch(() => {})
  return {
    async whenSpent() {
      await done
      return { failed }
    },
  }
}

/** @returns the status code; 0 if the connection failed */
export async function takeUse(port: number, token: string): Promise<number> {
  return (await send(port, 'GET', '/daily/1', bearer(token))).status
}
