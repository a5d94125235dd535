// Checks that `allow_in_path` does not let requests bypass the guards of a route to the same service.
import type { Diagnostic } from '../diagnostics.ts'
import { type DeclaredRoute, type SameService, sharedUpstream } from './declarations.ts'

/**
 * For the gateway, `/api%2fv1%2fprivate` is one segment. A server may decode the path first and then split it. This
 * server sees three segments, and may serve a path that another route guards.
 */
export function checkPathBypasses(routes: readonly DeclaredRoute[], isSame: SameService): Diagnostic[] {
  /** Maps each upstream to the first guarded route that leads to the same service. */
  const guards = new Map<string | undefined, DeclaredRoute | undefined>()
  const guardOf = (upstream: string | undefined): DeclaredRoute | undefined => {
    if (!guards.has(upstream))
      guards.set(
        upstream,
        routes.find(route => isGuarded(route, upstream, isSame)),
      )
    return guards.get(upstream)
  }
  return routes.flatMap(route => {
    const { allow_in_path: allowed, upstream } = route.keys
    const index = allowed?.indexOf('encoded_slash') ?? -1
    if (index === -1 || (upstream === undefined && !route.isForwardAuthOnly)) return []
    const guarded = guardOf(upstream)
    if (guarded === undefined) return []
    const which = guarded === route ? 'this route' : `${guarded.label}, which has ${sharedUpstream(route)}`
    return [
      route.diagnosticWithin(
        ['allow_in_path', index],
        `encoded_slash would let requests bypass the guards of ${which}; use a separate upstream that has only routes with auth: none`,
      ),
    ]
  })
}

function isGuarded(
  { keys, guardsKnown }: DeclaredRoute,
  upstream: string | undefined,
  isSame: SameService,
): boolean {
  return guardsKnown && keys.auth !== 'none' && isSame(keys.upstream, upstream)
}
