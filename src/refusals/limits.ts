// Creates the refusals of limits (429): rate limits with the headers of draft-ietf-httpapi-ratelimit-headers-09,
// connection limits, and the daily limit.
import { dailyLimitSentence, upgradePath } from './catalog.ts'
import { Refusal } from './refusal.ts'

export interface RateLimitState {
  /** The number of requests per window. It is infinite if the limit is off. */
  limit: number
  windowMs: number
  /** Requests left in the window. */
  remaining: number
  /** Whole seconds, at least 1, until the window ends. */
  resetSeconds: number
}

export interface LimitNames {
  /** The name of the limit in the response headers. */
  readonly policy: string
  /** The configuration key for the log, for example `auth.rate_limits.register` or `routes.courses.rate_limit`. */
  readonly key: string
}

export function rateLimited({ policy, key }: LimitNames, state: RateLimitState): Refusal {
  return new Refusal('rate_limited', {
    reason: key,
    headers: {
      'retry-after': String(state.resetSeconds),
      ...rateLimitHeaders(policy, { ...state, remaining: 0 }),
    },
  })
}

export interface ConnectionLimit {
  readonly limit: number
  /** The configuration key for the log, for example `upstreams.courses.connections_per_client`. */
  readonly key: string
}

/**
 * Creates the refusal for a client that already has `limit` open connections to a service. The limit has no time
 * window. Its quota unit is defined in draft-ietf-httpapi-ratelimit-headers-10.
 */
export function tooManyConnections({ limit, key }: ConnectionLimit): Refusal {
  return new Refusal('rate_limited', {
    reason: key,
    headers: {
      'retry-after': '1',
      'ratelimit-policy': `"connections";q=${limit};qu="concurrent-requests"`,
      ratelimit: '"connections";r=0;t=1',
    },
  })
}

/**
 * Returns the headers with the client's state under the limit. Responses to allowed requests have these headers too.
 */
export function rateLimitHeaders(
  policy: string,
  { limit, windowMs, remaining, resetSeconds }: RateLimitState,
) {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}

/**
 * Creates the refusals for users who have reached the daily limit. Their sentence contains the limit. All requests that
 * are refused within the same second share one refusal.
 * @param limit the number of uses per day
 * @returns a function that returns the refusal; its argument is the number of seconds until UTC midnight
 */
export function createDailyLimitReached(limit: number): (retryAfterSeconds: number) => Refusal {
  const body = { error: dailyLimitSentence(limit), upgrade_url: upgradePath }
  let last: { retryAfterSeconds: number; refusal: Refusal } | undefined
  return retryAfterSeconds => {
    if (last?.retryAfterSeconds !== retryAfterSeconds) {
      const headers = { 'retry-after': String(retryAfterSeconds) }
      last = { retryAfterSeconds, refusal: new Refusal('daily_limit_reached', { body, headers }) }
    }
    return last.refusal
  }
}
