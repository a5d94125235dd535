// The rate limit of a route (CONTRACT §2, `rate_limit`): per user, or per client address if anonymous.
import { clientKeyOf } from '../../identity/client-key.ts'
import type { Identity } from '../../identity/identity.ts'
import { rateLimited, rateLimitHeaders } from '../../refusals/limits.ts'
import type { CreateRateLimiter } from '../../storage/rate-limiter.ts'
import type { Route } from '../routing/route.ts'
import type { Guard } from './guard.ts'

declare const limited: unique symbol

/** An identity that is within the route's limit. */
export type WithinLimit = Identity & { readonly [limited]: true }

/** Refuses with 429 `rate_limited`, never because a store is unreachable: counts are then in memory. */
export type RateLimit = (route: Route) => Guard<Identity, WithinLimit>

/** @param createLimiter limiters of one name share their counts across all replicas */
export function createRateLimit(createLimiter: CreateRateLimiter): RateLimit {
  return ({ name, rate_limit }) => {
    if (!rate_limit) return (_, identity) => identity as WithinLimit
    // The prefix separates them from the limits of local endpoints, whatever the route is called.
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
