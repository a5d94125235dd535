// Whether a path that not every server reads in the same way may go where it matches (CONTRACT §6, `allow_in_path`).
import { laxInterpretations } from '../parsing/path-ambiguity.ts'
import type { RequestTarget } from '../parsing/request-target.ts'
import type { Route } from './route.ts'
import type { RouteTable } from './route-table.ts'

interface Options {
  /** Whether a path is the gateway's own. */
  isOwn(segments: readonly string[]): boolean
  routes: RouteTable<Route>
  /** Whether two upstreams, by name, are one service. */
  isSameService(one: string, other: string): boolean
}

/** @param route the one that matches with the uncertain characters taken as ordinary ones */
export type AllowAmbiguous = (route: Route, method: string, host: string, target: RequestTarget) => boolean

/**
 * The route must allow all that the path needs. It may still not lead around another route: where a laxer reading
 * is the gateway's own, or another and guarded route's at the same upstream, that one's guards would be dodged.
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
