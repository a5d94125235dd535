// Enforces two rate limits for each request. The limit of the user's plan counts the requests to all routes together.
// The limit of the route counts per user, or per client address for anonymous requests.
import type { Plans } from '../../config/plans.ts'
import { clientKeyOf } from '../../identity/client-key.ts'
import type { Identity } from '../../identity/identity.ts'
import { type LimitNames, rateLimited, rateLimitHeaders } from '../../refusals/limits.ts'
import type { Refusal } from '../../refusals/refusal.ts'
import type { CreateRateLimiter, Limit, RateLimiter } from '../../storage/rate-limiter.ts'
import type { User } from '../../users/user.ts'
import type { Route } from '../routing/route.ts'
import type { Guard, GuardedRequest } from './guard.ts'

declare const limited: unique symbol

export type WithinLimit = Identity & { readonly [limited]: true }

/**
 * Creates the guard that refuses requests over a limit with 429 `rate_limited`. If the store is
 * unreachable, requests are counted in memory instead. The guard is synchronous if neither the user's plan nor the
 * route has a limit.
 */
export type RateLimit = (route: Route) => Guard<Identity, WithinLimit>

interface NamedLimit {
  readonly limiter: RateLimiter
  readonly names: LimitNames
}

/**
 * @param createLimiter a function that creates a limiter; limiters with the same name share their counts across all
 *   replicas
 */
export function createRateLimit(createLimiter: CreateRateLimiter, plans: Plans): RateLimit {
  // The prefix makes the names different from the limiter names of the local endpoints, which have no prefix.
  const create = (kind: 'plan' | 'route', name: string, limit: Limit): NamedLimit => ({
    limiter: createLimiter(`${kind}:${name}`, limit),
    names: {
      policy: kind === 'plan' ? `plan:${name}` : name,
      key: `${kind}s.${name}.rate_limit`,
    },
  })
  const limitsOfPlans = new Map(
    plans.all.flatMap(({ name, rate_limit }) =>
      rate_limit ? [[name, create('plan', name, rate_limit)] as const] : [],
    ),
  )
  const limitOfPlan = ({ plan }: User) => limitsOfPlans.get((plans.find(plan) ?? plans.first).name)

  return ({ name, rate_limit }) => {
    const ofRoute = rate_limit ? create('route', name, rate_limit) : undefined
    return (request, identity) => {
      const ofPlan = identity.kind === 'user' ? limitOfPlan(identity.user) : undefined
      if (ofPlan === undefined && ofRoute === undefined) return identity as WithinLimit
      return consumeEach([ofPlan, ofRoute], request, identity)
    }
  }
}

/** Counts the request under each limit, in order. If one limit refuses the request, later limits do not count it. */
async function consumeEach(
  limits: readonly (NamedLimit | undefined)[],
  request: GuardedRequest,
  identity: Identity,
): Promise<WithinLimit | Refusal> {
  const key = String(clientKeyOf(identity, request.head.client))
  for (const limit of limits) {
    if (limit === undefined) continue
    const taken = await limit.limiter.consume(key)
    if (!taken.allowed) return rateLimited(limit.names, taken)
    request.addHeaders(rateLimitHeaders(limit.names.policy, taken))
  }
  return identity as WithinLimit
}
