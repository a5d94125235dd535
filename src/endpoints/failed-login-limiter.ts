// Limits that count failed logins only (CONTRACT §2, `login_failures`), and let not one guess more in at once.

import { rateLimited } from '../refusals/limits.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { Limiter } from '../storage/rate-limiter.ts'

export interface FailureLimit {
  /** The limit's name, as clients are told it. */
  readonly policy: string
  readonly limiter: Limiter
  /** What is counted by. */
  readonly key: string
}

export interface FailureLimits {
  /**
   * Makes an attempt that counts against every limit, unless it does not end in `credentials_invalid`.
   * @throws Refusal 429 `rate_limited`, or whatever the attempt throws
   */
  counting<T>(limits: readonly FailureLimit[], attempt: () => Promise<T>): Promise<T>
}

/**
 * Every attempt takes its places before it is made and gives them back unless it failed: counting afterwards would
 * let as many guesses through at once as fit between the look and the count.
 */
export function createFailureLimits(): FailureLimits {
  const holders = createHolders()
  return {
    async counting(limits, attempt) {
      const held: { limit: FailureLimit; end: () => void }[] = []
      const giveBack = () => Promise.all(held.map(({ limit: { limiter, key } }) => limiter.giveBack(key)))
      try {
        for (const limit of limits) {
          await takePlace(limit, holders)
          held.push({ limit, end: holders.begin(nameOf(limit)) })
        }
        const result = await attempt()
        await giveBack()
        return result
      } catch (thrown) {
        if (!(thrown instanceof Refusal && thrown.code === 'credentials_invalid')) await giveBack()
        throw thrown
      } finally {
        for (const { end } of held) end()
      }
    },
  }
}

function nameOf({ policy, key }: FailureLimit): string {
  return `${policy} ${key}`
}

/** Places that are only held by attempts under way may come back: those are waited for before it is a no. */
async function takePlace(limit: FailureLimit, holders: Holders): Promise<void> {
  const name = nameOf(limit)
  for (;;) {
    const heldBefore = holders.count(name) > 0
    const taken = await limit.limiter.take(limit.key)
    if (taken.allowed) return
    // More of them than there are places would only be woken to be refused: a flood of guesses does not wait.
    const mayWait = holders.count(name) > 0 && holders.waiting(name) < taken.limit
    if (mayWait) await holders.nextEnd(name)
    // The last of them may have given its place back while we were told that there is none.
    else if (!heldBefore || holders.count(name) > 0) throw rateLimited(limit.policy, taken)
  }
}

/** The attempts that hold a place, by the name of what is counted. */
interface Holders {
  /** Notes one; call the result when it has ended. */
  begin(name: string): () => void
  count(name: string): number
  /** How many wait for one to end. */
  waiting(name: string): number
  /** Resolves when one ends. */
  nextEnd(name: string): Promise<void>
}

function createHolders(): Holders {
  const held = new Map<string, { count: number; waiting: (() => void)[] }>()
  return {
    begin(name) {
      const entry = held.get(name) ?? { count: 0, waiting: [] }
      entry.count += 1
      held.set(name, entry)
      return () => {
        entry.count -= 1
        if (entry.count === 0) held.delete(name)
        for (const wake of entry.waiting.splice(0)) wake()
      }
    },
    count: name => held.get(name)?.count ?? 0,
    waiting: name => held.get(name)?.waiting.length ?? 0,
    nextEnd: name => new Promise(resolve => held.get(name)?.waiting.push(resolve)),
  }
}
