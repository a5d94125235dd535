// Limits that count failed logins only (CONTRACT §2, `login_failures`), and let not one guess more in at once.

import { rateLimited } from '../refusals/limits.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiter } from '../storage/rate-limiter.ts'

export interface FailedLoginLimit {
  /** The limit's name, as clients are told it. */
  readonly policy: string
  readonly limiter: RateLimiter
  /** What is counted by. */
  readonly key: string
}

export interface FailedLoginLimiter {
  /**
   * Makes an attempt that counts against every limit, unless it does not end in `credentials_invalid`.
   * @throws Refusal 429 `rate_limited`, or whatever the attempt throws
   */
  attempt<T>(limits: readonly FailedLoginLimit[], attempt: () => Promise<T>): Promise<T>
}

/**
 * Every attempt takes its places before it is made and gives them back unless it failed: counting afterwards would
 * let as many guesses through at once as fit between the look and the count.
 */
export function createFailedLoginLimiter(): FailedLoginLimiter {
  const attempts = createActiveAttempts()
  return {
    async attempt(limits, attempt) {
      const slots: { limit: FailedLoginLimit; end: () => void }[] = []
      const refundAll = () => Promise.all(slots.map(({ limit: { limiter, key } }) => limiter.refund(key)))
      try {
        for (const limit of limits) {
          await acquireSlot(limit, attempts)
          slots.push({ limit, end: attempts.begin(limitKey(limit)) })
        }
        const result = await attempt()
        await refundAll()
        return result
      } catch (thrown) {
        if (!(thrown instanceof Refusal && thrown.code === 'credentials_invalid')) await refundAll()
        throw thrown
      } finally {
        for (const { end } of slots) end()
      }
    },
  }
}

function limitKey({ policy, key }: FailedLoginLimit): string {
  return `${policy} ${key}`
}

/** Places that are only held by attempts under way may come back: those are waited for before it is a no. */
async function acquireSlot(limit: FailedLoginLimit, attempts: ActiveAttempts): Promise<void> {
  const key = limitKey(limit)
  for (;;) {
    const hadAttempts = attempts.count(key) > 0
    const result = await limit.limiter.consume(limit.key)
    if (result.allowed) return
    // More of them than there are places would only be woken to be refused: a flood of guesses does not wait.
    const mayWait = attempts.count(key) > 0 && attempts.waiting(key) < result.limit
    if (mayWait) await attempts.nextEnd(key)
    // The last of them may have given its place back while we were told that there is none.
    else if (!hadAttempts || attempts.count(key) > 0) throw rateLimited(limit.policy, result)
  }
}

/** The attempts that hold a place, by the name of what is counted. */
interface ActiveAttempts {
  /** Notes one; call the result when it has ended. */
  begin(key: string): () => void
  count(key: string): number
  /** How many wait for one to end. */
  waiting(key: string): number
  /** Resolves when one ends. */
  nextEnd(key: string): Promise<void>
}

function createActiveAttempts(): ActiveAttempts {
  const active = new Map<string, { count: number; waiting: (() => void)[] }>()
  return {
    begin(key) {
      const entry = active.get(key) ?? { count: 0, waiting: [] }
      entry.count += 1
      active.set(key, entry)
      return () => {
        entry.count -= 1
        if (entry.count === 0) active.delete(key)
        for (const resume of entry.waiting.splice(0)) resume()
      }
    },
    count: key => active.get(key)?.count ?? 0,
    waiting: key => active.get(key)?.waiting.length ?? 0,
    nextEnd: key => new Promise(resolve => active.get(key)?.waiting.push(resolve)),
  }
}
