// 429 `Trop de requêtes` with the fields of draft-ietf-httpapi-ratelimit-headers-09 (CONTRACT §3).
import { Refusal } from './refusal.ts'

interface Spent {
  /** Requests a window. */
  limit: number
  /** Milliseconds. */
  window: number
  /** Requests left in it. */
  remaining: number
  resetSeconds: number
}

/** @param policy the limit's name, as clients may tell it from others */
export function rateLimited(policy: string, spent: Spent): Refusal {
  return new Refusal('rate_limited', {
    headers: {
      'retry-after': String(spent.resetSeconds),
      ...rateFields(policy, { ...spent, remaining: 0 }),
    },
  })
}

/** Where a client stands, also on what is let through. */
export function rateFields(policy: string, { limit, window, remaining, resetSeconds }: Spent) {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(window / 1000)}`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
  }
}
