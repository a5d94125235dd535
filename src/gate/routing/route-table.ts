// Matches requests to routes: segment by segment from the left, then by host, then by method.
import { PathTree } from '../../config/formats/path-tree.ts'
import type { Route } from './route.ts'

export type Match<R extends Route> =
  | { readonly kind: 'route'; readonly route: R }
  /**
   * Some routes match the path and the host, but the most specific of these routes do not allow the method. Less
   * specific routes are not tried. `routes` are the most specific routes, and `route` is the first of them.
   */
  | { readonly kind: 'method'; readonly routes: readonly R[]; readonly route: R }
  | { readonly kind: 'none'; readonly route?: undefined }

export interface RouteTable<R extends Route> {
  /**
   * @param host the host in lower case, without port and final dot
   * @param segments the path segments, decoded once and folded, as `parseRequestTarget` returns them
   */
  match(method: string, host: string, segments: readonly string[]): Match<R>
}

export function createRouteTable<R extends Route>(routes: readonly R[]): RouteTable<R> {
  const tree = new PathTree<R>()
  for (const route of routes) tree.insert(route)
  return {
    match(method, host, segments) {
      const candidates = tree.find(host, segments)
      if (candidates === undefined) return { kind: 'none' }
      for (const route of candidates) {
        if (route.allowedMethods === undefined || route.allowedMethods.has(method))
          return { kind: 'route', route }
      }
      return { kind: 'method', routes: candidates, route: candidates[0] as R }
    },
  }
}

/** Returns the methods of the routes, for the header `Allow`. */
export function allowOf(routes: readonly Route[]): string {
  return [...new Set(routes.flatMap(route => [...(route.allowedMethods ?? [])]))].sort().join(', ')
}
