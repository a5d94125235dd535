// 429 `Trop de requêtes` with the fields of draft-ietf-httpapi-ratelimit-headers-09 (CONTRACT §3).
import { Refusal } from './refusal.ts'

interface Spent {
  /** Requests a window. */
  limit: number
  /** Milliseconds. */
  window: number
  resetSeconds: number
}

/** @param policy the limit's name, as clients may tell it from others */
export function rateLimited(policy: string, { limit, window, resetSeconds }: Spent): Refusal {
  return new Refusal('rate_limited', {
    headers: {
      'retry-after': String(resetSeconds),
      'ratelimit-policy': `"${policy}";q=${limit};w=${Math.ceil(window / 1000)}`,
      ratelimit: `"${policy}";r=0;t=${resetSeconds}`,
    },
  })
}
