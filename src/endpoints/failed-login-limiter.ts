// Limits failed logins and wrong codes. Concurrent attempts cannot get more guesses than the limit allows.
import { createWaitingLine, type WaitingLine } from '../async/semaphore.ts'
import { type LimitNames, rateLimited } from '../refusals/limits.ts'
import { Refusal, serviceUnavailable } from '../refusals/refusal.ts'
import { limitNames, type RateLimiter, type RateLimiters } from '../storage/rate-limiter.ts'

interface FailedLoginLimit {
  readonly names: LimitNames
  readonly limiter: RateLimiter
  readonly key: string
}

export interface FailedLoginLimiter {
  /**
   * Runs an attempt and counts it against every limit if it ends in `credentials_invalid` or `code_invalid`.
   * @throws Refusal 429 `rate_limited`; 503 `service_unavailable` if the attempt has to wait too long for other running
   *   attempts; errors of the attempt
   */
  attempt<T>(limits: readonly FailedLoginLimit[], attempt: () => Promise<T>): Promise<T>
}

/** @param email the normalized email @throws the errors of `FailedLoginLimiter` */
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
 * Each attempt takes a slot of every limit before it runs. The slots are refunded unless the guess was wrong. If a
 * wrong guess were counted only after it ran, many concurrent guesses could pass the check before the first of them is
 * counted.
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

/** Takes a slot. If no slot is free, waits while other attempts are running, because their slots may be refunded. */
async function acquireSlot(limit: FailedLoginLimit, attempts: ActiveAttempts): Promise<EndAttempt> {
  const key = limitKey(limit)
  for (;;) {
    const hadAttempts = attempts.count(key) > 0
    const result = await limit.limiter.consume(limit.key)
    // The attempt is registered immediately. Otherwise, a later attempt that the limiter refuses could not see this
    // attempt and wait for its slot.
    if (result.allowed) return attempts.begin(key)
    if (attempts.count(key) > 0) await attempts.nextFreeSlot(key)
    // No attempt is running now. If attempts were running before `consume`, the last of them may have refunded its slot
    // after the limiter refused this attempt. So the loop tries again.
    else if (!hadAttempts) throw rateLimited(limit.names, result)
  }
}

/** The maximum wait for running attempts, in milliseconds. It equals the default of `auth.hashing.wait`. */
const maxWaitMs = 5_000

type EndAttempt = (isRefunded: boolean) => void

type ActiveAttempts = ReturnType<typeof createActiveAttempts>

/** Counts the running attempts, separately for each limit and key. */
function createActiveAttempts() {
  const active = new Map<string, { count: number; waiting: WaitingLine<void> }>()
  return {
    /** Registers an attempt. The returned function must be called when the attempt ends. */
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
    /**
     * Resolves for one waiting attempt when a slot is refunded, and for all waiting attempts when no attempt is
     * running.
     * @throws Refusal 503 if the wait takes too long
     */
    nextFreeSlot: async (key: string) => active.get(key)?.waiting.join(maxWaitMs, serviceUnavailable).share,
  }
}
