// Limits that count failed logins and wrong codes only (CONTRACT §2, `login_failures`; §12), and admit no extra guess
// under concurrency.
import { createWaitingLine, type WaitingLine } from '../async/semaphore.ts'
import { type LimitNames, rateLimited } from '../refusals/limits.ts'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import { limitNames, type RateLimiter, type RateLimiters } from '../storage/rate-limiter.ts'

interface FailedLoginLimit {
  readonly names: LimitNames
  readonly limiter: RateLimiter
  /** What the limiter counts by. */
  readonly key: string
}

export interface FailedLoginLimiter {
  /**
   * Runs an attempt and counts it against every limit if it ends in `credentials_invalid` or `code_invalid`.
   * @throws Refusal 429 `rate_limited`, 503 `service_unavailable` if attempts that may not count take too long, or
   * whatever the attempt throws
   */
  attempt<T>(limits: readonly FailedLoginLimit[], attempt: () => Promise<T>): Promise<T>
}

/**
 * Runs an attempt at what an account is opened with: password or code.
 * @param email normalised @throws as `FailedLoginLimiter`
 */
export type AttemptGuess = <T>(client: string, email: string, attempt: () => Promise<T>) => Promise<T>

export function createAttemptGuess(
  failedLogins: FailedLoginLimiter,
  { login, login_address }: Pick<RateLimiters, 'login' | 'login_address'>,
): AttemptGuess {
  return (client, email, attempt) => {
    const ofAccount = { names: limitNames.login, limiter: login, key: `${client} ${email}` }
    const ofAddress = { names: limitNames.login_address, limiter: login_address, key: client }
    return failedLogins.attempt([ofAccount, ofAddress], attempt)
  }
}

/**
 * Each attempt consumes its slots before it runs, and refunds them unless it failed: counting afterwards would admit
 * as many concurrent guesses as fit between the check and the count.
 */
export function createFailedLoginLimiter(): FailedLoginLimiter {
  const attempts = createActiveAttempts()
  return {
    async attempt(limits, attempt) {
      const slots: { limit: FailedLoginLimit; end: EndAttempt }[] = []
      let isRefunded = true
      try {
        for (const limit of limits) {
          slots.push({ limit, end: await acquireSlot(limit, attempts) })
        }
        return await attempt()
      } catch (thrown) {
        isRefunded = !isWrongGuess(thrown)
        throw thrown
      } finally {
        if (isRefunded) await Promise.all(slots.map(({ limit: { limiter, key } }) => limiter.refund(key)))
        for (const { end } of slots) end(isRefunded)
      }
    },
  }
}

function isWrongGuess(thrown: unknown): boolean {
  return (
    thrown instanceof Refusal && (thrown.code === 'credentials_invalid' || thrown.code === 'code_invalid')
  )
}

function limitKey({ names, key }: FailedLoginLimit): string {
  return `${names.policy} ${key}`
}

/**
 * Waits while no slot is free and attempts are running: each that succeeds refunds its slot, because only failures count
 * (CONTRACT §2).
 */
async function acquireSlot(limit: FailedLoginLimit, attempts: ActiveAttempts): Promise<EndAttempt> {
  const key = limitKey(limit)
  for (;;) {
    const hadAttempts = attempts.count(key) > 0
    const result = await limit.limiter.consume(limit.key)
    // At once: those whom the limiter refused behind this one look for it next.
    if (result.allowed) return attempts.begin(key)
    if (attempts.count(key) > 0) await attempts.nextFreeSlot(key)
    // Consume again: the last attempt may have refunded its slot after the limiter refused this one.
    else if (!hadAttempts) throw rateLimited(limit.names, result)
  }
}

/** The longest that one waits for others' attempts, in milliseconds: as the default of `auth.hashing.wait`. */
const maxWaitMs = 5_000

type EndAttempt = (isRefunded: boolean) => void

type ActiveAttempts = ReturnType<typeof createActiveAttempts>

/** Running attempts by the key they are counted under. */
function createActiveAttempts() {
  const active = new Map<string, { count: number; waiting: WaitingLine<void> }>()
  return {
    /** Registers an attempt; call the returned function when it ends. */
    begin(key: string): EndAttempt {
      const entry = active.get(key) ?? { count: 0, waiting: createWaitingLine<void>() }
      entry.count += 1
      active.set(key, entry)
      return isRefunded => {
        entry.count -= 1
        if (entry.count === 0) active.delete(key)
        if (isRefunded) entry.waiting.serve()
        while (entry.count === 0 && entry.waiting.serve());
      }
    },
    count: (key: string) => active.get(key)?.count ?? 0,
    /** Resolves for one that waits when a slot is refunded, and for all when none runs. @throws Refusal 503 */
    nextFreeSlot: async (key: string) => active.get(key)?.waiting.join(maxWaitMs, serviceUnavailable).share,
  }
}
