// 429 `Trop de requêtes` with the fields of draft-ietf-httpapi-ratelimit-headers-09 (CONTRACT §3).
import { Refusal } from './refusal.ts'

interface RateLimitState {
  /** Requests a window. */
  limit: number
  /** Milliseconds. */
  windowMs: number
  /** Requests left in it. */
  remaining: number
  resetSeconds: number
}

/** @param policy the limit's name, as clients may tell it from others */
export function rateLimited(policy: string, state: RateLimitState): Refusal {
  return new Refusal('rate_limited', {
    headers: {
      'retry-after': String(state.resetSeconds),
      ...rateLimitHeaders(policy, { ...state, remaining: 0 }),
    },
  })
}

/** Where a client stands, also on what is let through. */
export function rateLimitHeaders(
  policy: string,
  { limit, windowMs, remaining, resetSeconds }: RateLimitState,
) {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}
