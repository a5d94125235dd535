// Decides which guards a route activates. A guard that is not active allows every request.
import type { RouteConfig } from './sections/schema.ts'

export type GuardName = keyof typeof isGuardActive

/** Decides for each guard whether a route activates it. The guards run in the order of the keys. */
export const isGuardActive = {
  authenticate: ({ auth }) => auth !== 'none',
  rate_limit: ({ rate_limit }) => Boolean(rate_limit),
  plan: ({ plans }) => plans !== undefined,
  verified: ({ verified }) => verified,
  max_body: ({ max_body }) => max_body !== undefined,
  target: () => true,
  free_daily: ({ free_daily }) => free_daily,
} as const satisfies Record<string, (route: Omit<RouteConfig, 'upstream'>) => boolean>

export const guardNames = Object.keys(isGuardActive) as GuardName[]

export function activeGuards(route: Omit<RouteConfig, 'upstream'>): GuardName[] {
  return guardNames.filter(name => isGuardActive[name](route))
}
