// 429 `Trop de requêtes` with the headers of draft-ietf-httpapi-ratelimit-headers-09 (CONTRACT §3).
import { Refusal } from './refusal.ts'

interface RateLimitState {
  /** Requests per window. */
  limit: number
  windowMs: number
  /** Requests left in the window. */
  remaining: number
  resetSeconds: number
}

/** @param policy the limit's name, by which clients tell it from other limits */
export function rateLimited(policy: string, state: RateLimitState): Refusal {
  return new Refusal('rate_limited', {
    headers: {
      'retry-after': String(state.resetSeconds),
      ...rateLimitHeaders(policy, { ...state, remaining: 0 }),
    },
  })
}

/** The client's state under the limit; allowed requests receive it too. */
export function rateLimitHeaders(
  policy: string,
  { limit, windowMs, remaining, resetSeconds }: RateLimitState,
) {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(windowMs / 1000)}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}
