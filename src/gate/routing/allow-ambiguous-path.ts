// Decides whether an ambiguous path may go to the route that it matches (`allow_in_path`).
import { laxInterpretations } from '../parsing/path-ambiguity.ts'
import type { RequestTarget } from '../parsing/request-target.ts'
import type { Route } from './route.ts'
import type { RouteTable } from './route-table.ts'

interface Options {
  /** Returns whether a path belongs to the gateway's own endpoints. */
  isOwn(segments: readonly string[]): boolean
  routes: RouteTable<Route>
  /** Returns whether two upstream names belong to the same service. True if both are `undefined`. */
  isSameService(one: string | undefined, other: string | undefined): boolean
}

/** @param route the route that matches if ambiguous characters count as ordinary characters */
export type AllowAmbiguous = (route: Route, method: string, host: string, target: RequestTarget) => boolean

/**
 * Creates the check. The route must allow all ambiguities of the path, and the path must not bypass the guards of
 * another route. So if a more lenient server interprets the path differently, the result must match neither a local
 * endpoint nor another guarded route of the same service.
 */
export function createAllowAmbiguous({ isOwn, routes, isSameService }: Options): AllowAmbiguous {
  return (route, method, host, target) => {
    if (target.ambiguities === 0) return true
    if ((target.ambiguities & ~route.allowedAmbiguities) !== 0) return false
    return laxInterpretations(target.segments).every(segments => {
      if (isOwn(segments)) return false
      const lax = routes.match(method, host, segments)
      if (lax.kind === 'none' || lax.route === route) return true
      return (
        !isSameService(lax.route.upstreamName, route.upstreamName) ||
        (lax.kind === 'route' && !lax.route.isGuarded)
      )
    })
  }
}
