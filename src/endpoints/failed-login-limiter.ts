// Limits that count failed logins and wrong codes only (CONTRACT §2, `login_failures`; §12), and admit no extra guess
// under concurrency.

import { rateLimited } from '../refusals/limits.ts'
import { Refusal } from '../refusals/refusal.ts'
import type { RateLimiter, RateLimiters } from '../storage/rate-limiter.ts'

interface FailedLoginLimit {
  /** The limit's name in the response. */
  readonly policy: string
  readonly limiter: RateLimiter
  /** What the limiter counts by. */
  readonly key: string
}

export interface FailedLoginLimiter {
  /**
   * Runs an attempt and counts it against every limit if it ends in `credentials_invalid` or `code_invalid`.
   * @throws Refusal 429 `rate_limited`, or whatever the attempt throws
   */
  attempt<T>(limits: readonly FailedLoginLimit[], attempt: () => Promise<T>): Promise<T>
}

/** The limits of guesses at what an account is opened with: password or code. @param email normalised */
export function guessLimits(
  limiters: Pick<RateLimiters, 'login' | 'login_address'>,
  client: string,
  email: string,
): readonly FailedLoginLimit[] {
  return [
    { policy: 'login', limiter: limiters.login, key: `${client} ${email}` },
    { policy: 'login_address', limiter: limiters.login_address, key: client },
  ]
}

/**
 * Each attempt consumes its slots before it runs, and refunds them unless it failed: counting afterwards would admit
 * as many concurrent guesses as fit between the check and the count.
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
        if (!isWrongGuess(thrown)) await refundAll()
        throw thrown
      } finally {
        for (const { end } of slots) end()
      }
    },
  }
}

function isWrongGuess(thrown: unknown): boolean {
  return (
    thrown instanceof Refusal && (thrown.code === 'credentials_invalid' || thrown.code === 'code_invalid')
  )
}

function limitKey({ policy, key }: FailedLoginLimit): string {
  return `${policy} ${key}`
}

/** Slots of running attempts may be refunded: waits for those attempts to end before refusing. */
async function acquireSlot(limit: FailedLoginLimit, attempts: ActiveAttempts): Promise<void> {
  const key = limitKey(limit)
  for (;;) {
    const hadAttempts = attempts.count(key) > 0
    const result = await limit.limiter.consume(limit.key)
    if (result.allowed) return
    // At most `limit` attempts wait: more would be woken only to be refused, and a flood of guesses must not queue.
    const mayWait = attempts.count(key) > 0 && attempts.waiting(key) < result.limit
    if (mayWait) await attempts.nextEnd(key)
    // Consume again: the last attempt may have refunded its slot after the limiter refused this one.
    else if (!hadAttempts || attempts.count(key) > 0) throw rateLimited(limit.policy, result)
  }
}

/** Running attempts by the key they are counted under. */
interface ActiveAttempts {
  /** Registers an attempt; call the returned function when it ends. */
  begin(key: string): () => void
  count(key: string): number
  /** How many wait for an attempt to end. */
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
