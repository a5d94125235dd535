// The rate limit of a route (CONTRACT §2, `rate_limit`): by user, and by client address where nobody is known.
import type { Identity } from '../../identity/identity.ts'
import { rateLimited, rateLimitHeaders } from '../../refusals/limits.ts'
import type { CreateRateLimiter } from '../../storage/rate-limiter.ts'
import { rateLimitKey } from '../parsing/client-address.ts'
import type { Route } from '../routing/route.ts'
import type { Guard } from './guard.ts'

declare const limited: unique symbol

/** An identity that is within the route's limit. */
export type WithinLimit = Identity & { readonly [limited]: true }

/** Refuses with 429 `rate_limited`; never for a store that is away: memory counts then. */
export type RateLimit = (route: Route) => Guard<Identity, WithinLimit>

/** @param createLimiter of one name, the same for all replicas */
export function createRateLimit(createLimiter: CreateRateLimiter): RateLimit {
  return ({ name, rate_limit }) => {
    if (!rate_limit) return (_, identity) => identity as WithinLimit
    // Apart from the limits of our own endpoints, whatever the route is called.
    const limiter = createLimiter(`route:${name}`, rate_limit)
    return async (request, identity) => {
      // An address has a dot or a colon in it; no user's id has.
      const key = identity.kind === 'user' ? String(identity.user.id) : rateLimitKey(request.head.client)
      const taken = await limiter.consume(key)
      if (!taken.allowed) return rateLimited(name, taken)
      request.addHeaders(rateLimitHeaders(name, taken))
      return identity as WithinLimit
    }
  }
}
