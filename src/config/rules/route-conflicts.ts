// Finds routes with the same name, and routes that match the same requests.
import type { Diagnostic } from '../diagnostics.ts'
import { comparisonKey } from '../formats/path-pattern.ts'
import type { DeclaredRoute } from './declarations.ts'

export function checkRouteConflicts(routes: readonly DeclaredRoute[]): Diagnostic[] {
  const names = new Map<string, DeclaredRoute>()
  const paths = new Map<string, Map<string, Claims>>()
  return routes.flatMap((route, index) => {
    const diagnostics: Diagnostic[] = []
    const { name } = route.keys
    const sameName = name === undefined ? undefined : names.get(name)
    if (sameName)
      diagnostics.push(route.diagnostic('name', `is also the name of ${sameName.label}; choose another name`))
    else if (name !== undefined) names.set(name, route)
    const sameRequests = routes[claim(paths, route, index)]
    if (sameRequests) {
      diagnostics.push(
        route.diagnostic(
          'path',
          `matches the same requests as ${sameRequests.label}; use different paths, hosts or methods`,
        ),
      )
    }
    return diagnostics
  })
}

/** The indexes of the routes that claim the same path and host. */
interface Claims {
  /** The index of the first of these routes, whatever its methods are. */
  any: number
  /** The index of the first of these routes that allows every method. */
  all: number
  readonly byMethod: Map<string, number>
}

/**
 * Claims the path, hosts and methods of a route. A route with hosts does not conflict with a route without hosts. The
 * route with hosts wins.
 * @returns the index of the first earlier route that matches one of the same requests; infinity if there is none
 */
function claim(paths: Map<string, Map<string, Claims>>, route: DeclaredRoute, index: number): number {
  const { pattern, hosts, methods } = route
  let first = Number.POSITIVE_INFINITY
  if (pattern === undefined || hosts === undefined || methods === undefined) return first
  const ofPath = entry(paths, comparisonKey(pattern), () => new Map<string, Claims>())
  for (const host of hosts.length === 0 ? [''] : hosts) {
    const none = { any: Number.POSITIVE_INFINITY, all: Number.POSITIVE_INFINITY }
    const claims = entry(ofPath, host, () => ({ ...none, byMethod: new Map<string, number>() }))
    if (methods === 'all') {
      first = Math.min(first, other(claims.any, index))
      claims.all = Math.min(claims.all, index)
    } else {
      first = Math.min(first, other(claims.all, index))
      for (const method of methods) {
        first = Math.min(
          first,
          other(
            entry(claims.byMethod, method, () => index),
            index,
          ),
        )
      }
    }
    claims.any = Math.min(claims.any, index)
  }
  return first
}

/** A route that lists a host or a method twice does not conflict with itself. */
const other = (holder: number, index: number) => (holder === index ? Number.POSITIVE_INFINITY : holder)

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}
