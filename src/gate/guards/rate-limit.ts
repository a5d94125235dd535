// The rate limit of a route (CONTRACT §2, `rate_limit`): by user, and by client address where nobody is known.

import { mapSteps, type Steps } from '../../async/steps.ts'
import type { Identity } from '../../identity/identity.ts'
import { rateFields, rateLimited } from '../../refusals/limits.ts'
import type { CreateLimiter, Limiter } from '../../storage/rate-limiter.ts'
import { limitedBy } from '../parsing/client-address.ts'
import type { Arrival } from '../parsing/request-head.ts'
import type { Route } from '../routing/route.ts'

declare const limited: unique symbol

/** An identity that is within the route's limit. */
export type Limited = Identity & { readonly [limited]: true }

export interface Within {
  readonly identity: Limited
  /** Tell the client where it stands, whatever the answer becomes; `undefined` where the route has no limit. */
  readonly fields: Readonly<Record<string, string>> | undefined
}

/** @throws Refusal 429 `rate_limited`; never for a store that is away: memory counts then */
export type LimitRate = (identity: Identity, arrival: Arrival, route: Route) => Promise<Within> | Within

/** @param createLimiter of one name, the same for all replicas */
export function* limitRateSteps(routes: readonly Route[], createLimiter: CreateLimiter): Steps<LimitRate> {
  const limiters = new Map<Route, Limiter>()
  yield* mapSteps(routes, route => {
    // Apart from the limits of our own endpoints, whatever the route is called.
    if (route.rate_limit) limiters.set(route, createLimiter(`route:${route.name}`, route.rate_limit))
  })
  return (identity, arrival, route) => {
    const limiter = route.rate_limit ? limiters.get(route) : undefined
    if (limiter === undefined) return { identity: identity as Limited, fields: undefined }
    return take(limiter, identity, arrival, route)
  }
}

async function take(
  limiter: Limiter,
  identity: Identity,
  { client }: Arrival,
  { name }: Route,
): Promise<Within> {
  // An address has a dot or a colon in it; no user's id has.
  const taken = await limiter.take(identity.kind === 'user' ? String(identity.user.id) : limitedBy(client))
  if (!taken.allowed) throw rateLimited(name, taken)
  return { identity: identity as Limited, fields: rateFields(name, taken) }
}
