// Enforces the rate limit of a route, per user, or per client address for anonymous requests.
import { clientKeyOf } from '../../identity/client-key.ts'
import type { Identity } from '../../identity/identity.ts'
import { rateLimited, rateLimitHeaders } from '../../refusals/limits.ts'
import type { CreateRateLimiter } from '../../storage/rate-limiter.ts'
import type { Route } from '../routing/route.ts'
import type { Guard } from './guard.ts'

declare const limited: unique symbol

export type WithinLimit = Identity & { readonly [limited]: true }

/**
 * Creates a guard that refuses with 429 `rate_limited`. If the store is unreachable, requests are counted in memory
 * instead.
 */
export type RateLimit = (route: Route) => Guard<Identity, WithinLimit>

/**
 * @param createLimiter a function that creates a limiter; limiters with the same name share their counts across all
 *   replicas
 */
export function createRateLimit(createLimiter: CreateRateLimiter): RateLimit {
  return ({ name, rate_limit }) => {
    if (!rate_limit) return (_, identity) => identity as WithinLimit
    // Limiters of routes have this prefix, and limiters of local endpoints do not. So their names are never equal.
    const limiter = createLimiter(`route:${name}`, rate_limit)
    const names = { policy: name, key: `routes.${name}.rate_limit` }
    return async (request, identity) => {
      const taken = await limiter.consume(String(clientKeyOf(identity, request.head.client)))
      if (!taken.allowed) return rateLimited(names, taken)
      request.addHeaders(rateLimitHeaders(name, taken))
      return identity as WithinLimit
    }
  }
}
