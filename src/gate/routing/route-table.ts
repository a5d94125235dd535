// Finds the route of a request: by the segments of the path from left to right, then by host, then by method.
import { PathTree } from '../../config/formats/path-tree.ts'
import type { Route } from './route.ts'

export type Match<R extends Route> =
  | { readonly kind: 'route'; readonly route: R }
  /**
   * `routes` are the most specific routes that match the path and the host, but none of them allows the method. Less
   * specific routes are not tried. `route` is the first of `routes`.
   */
  | { readonly kind: 'method'; readonly routes: readonly R[]; readonly route: R }
  | { readonly kind: 'none'; readonly route?: undefined }

export interface RouteTable<R extends Route> {
  /**
   * @param host the host in lower case, without port and final dot
   * @param segments the path segments, decoded once and in lower case, as `parseRequestTarget` returns them
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
