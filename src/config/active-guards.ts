// Decides which guards a route activates. A guard that is not active allows every request.
import type { Plans } from './plans.ts'
import type { RouteConfig } from './sections/schema.ts'

export type GuardName = keyof typeof isGuardActive

/**
 * Decides for each guard whether a route activates it. The guards run in the order of the keys. The guard `scope` also
 * runs on other routes with authentication, because it refuses API keys with scopes there.
 */
export const isGuardActive = {
  authenticate: ({ auth }) => auth !== 'none',
  rate_limit: ({ auth, rate_limit }, plans) =>
    Boolean(rate_limit) || (auth !== 'none' && plans.all.some(plan => plan.rate_limit)),
  scope: ({ scope, bearer_only }) => scope !== undefined || bearer_only,
  plan: ({ plans, quota }) => plans !== undefined || quota !== undefined,
  verified: ({ verified }) => verified,
  max_body: ({ max_body }) => max_body !== undefined,
  target: ({ upstream }) => upstream !== undefined,
  // A route has at most one of these two guards.
  quota: ({ quota }) => quota !== undefined,
  free_daily: ({ free_daily }) => free_daily,
} as const satisfies Record<string, (route: GuardedConfig, plans: Plans) => boolean>

/** A route as configured or as compiled. Both have an upstream if the gateway forwards requests of the route. */
type GuardedConfig = Omit<RouteConfig, 'upstream'> & { readonly upstream?: unknown }

export const guardNames = Object.keys(isGuardActive) as GuardName[]

export function activeGuards(route: GuardedConfig, plans: Plans): GuardName[] {
  return guardNames.filter(name => isGuardActive[name](route, plans))
}
