// Clients that use up the daily uses of free users, at several replicas, whatever fails on the way.
import { setTimeout as sleep } from 'node:timers/promises'
import { bearer } from './accounts.ts'
import type { Replica } from './replicas.ts'
import { send } from './subjects.ts'

const clients = 48
/** The longest time without a request that passes or is refused: a store that is down returns long before. */
const patienceMs = 60_000

/**
 * Sends requests of every user in turn until each was refused.
 * @param replicas entries may be replaced meanwhile
 * @param tokens of one user each
 * @param uses that each user has left
 */
export function takeUses(
  replicas: readonly Replica[],
  tokens: readonly string[],
  uses: number,
): {
  /** Resolves with the number of requests that neither passed nor were refused as spent. */
  whenSpent(): Promise<{ failed: number }>
} {
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
  // `whenSpent` reports the error.
  done.catch(() => {})
  return {
    async whenSpent() {
      await done
      return { failed }
    },
  }
}

/** @returns the status; 0 if the connection failed */
export async function takeUse(port: number, token: string): Promise<number> {
  return (await send(port, 'GET', '/daily/1', bearer(token))).status
}
