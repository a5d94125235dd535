// Decides which guards a route activates. Except for `scope`, an inactive guard allows every request.
import type { Plans } from './plans.ts'
import type { RouteConfig } from './sections/schema.ts'

export type GuardName = keyof typeof isGuardActive

/**
 * Decides for each guard whether a route activates it. The guards run in the order of the keys. If a route with
 * authentication does not activate `scope`, this guard still runs and refuses API keys that have scopes.
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

/** A configured route or a compiled route. Each kind has an upstream if the gateway forwards the requests. */
type GuardedConfig = Omit<RouteConfig, 'upstream'> & { readonly upstream?: unknown }

export const guardNames = Object.keys(isGuardActive) as GuardName[]

export function activeGuards(route: GuardedConfig, plans: Plans): GuardName[] {
  return guardNames.filter(name => isGuardActive[name](route, plans))
}
