// What two routes may not be to each other: namesakes, rivals for a request, or one the other's back door.

import { parseHost } from './addresses.ts'
import type { DeclaredRoute } from './declared-route.ts'
import { covers, isMoreSpecific, overlap, sameShape } from './path-pattern.ts'
import type { Fault } from './problem.ts'

export function checkPairs(routes: readonly DeclaredRoute[]): Fault[] {
  return routes.flatMap((route, index) => {
    const before = routes.slice(0, index)
    const namesake = before.find(
      other => route.keys.name !== undefined && other.keys.name === route.keys.name,
    )
    const rival = before.find(other => areRivals(route, other))
    const faults: Fault[] = []
    if (namesake) faults.push(route.fault('name', `is the name of ${namesake.label} too; names are unique`))
    if (rival) {
      faults.push(
        route.fault(
          'path',
          `matches the same requests as ${rival.label}; tell them apart by path, hosts or methods`,
        ),
      )
    }
    for (const door of routes.filter(other => isBackDoor(other, route, routes))) {
      faults.push(
        route.fault(
          'path',
          `is open to other hosts through ${door.label}, which leads to the same upstream under weaker guards; give that one hosts or these guards`,
        ),
      )
    }
    return faults
  })
}

/** Some request matches both, and nothing decides: a route with hosts comes before one without (CONTRACT §2). */
function areRivals(a: DeclaredRoute, b: DeclaredRoute): boolean {
  if (!a.pattern || !b.pattern || !a.knows('hosts', 'methods') || !b.knows('hosts', 'methods')) return false
  return sameShape(a.pattern, b.pattern) && shareHost(a, b) && shareMethod(a, b)
}

/**
 * With another `Host` the same paths of the same upstream are served by `lax`, which asks for less than `guarded`.
 * Not where a third route stands in between: whatever it declares, nothing falls through it to a wider path.
 */
function isBackDoor(lax: DeclaredRoute, guarded: DeclaredRoute, routes: readonly DeclaredRoute[]): boolean {
  const { pattern: open } = lax
  const { pattern: shut } = guarded
  if (!open || !shut || !isWholly(lax) || !isWholly(guarded)) return false
  if (hostsOf(lax).length > 0 || hostsOf(guarded).length === 0) return false
  if (lax.keys.upstream !== guarded.keys.upstream || !asksForLess(lax, guarded)) return false
  if (!overlap(open, shut) || !shareMethod(lax, guarded)) return false
  return !routes.some(
    ({ pattern, keys, knows }) =>
      pattern !== undefined &&
      knows('hosts') &&
      keys.hosts?.length === 0 &&
      (covers(pattern, shut) || covers(pattern, open)) &&
      isMoreSpecific(pattern, open),
  )
}

const isWholly = (route: DeclaredRoute) =>
  route.knows('hosts', 'methods', 'upstream', 'auth', 'plans', 'free_daily')

function asksForLess({ keys: lax }: DeclaredRoute, { keys: guarded }: DeclaredRoute): boolean {
  const strength = { none: 0, optional: 1, required: 2 }
  return (
    strength[lax.auth ?? 'required'] < strength[guarded.auth ?? 'required'] ||
    (guarded.free_daily === true && lax.free_daily !== true) ||
    (guarded.plans !== undefined && !(lax.plans?.every(plan => guarded.plans?.includes(plan)) ?? false))
  )
}

function shareHost(a: DeclaredRoute, b: DeclaredRoute): boolean {
  const [some, others] = [hostsOf(a), hostsOf(b)]
  if (some.length === 0 || others.length === 0) return some.length === others.length
  return some.some(host => others.includes(host))
}

/** GET covers HEAD (CONTRACT §2), so a route for GET and one for HEAD share a method. */
function shareMethod(a: DeclaredRoute, b: DeclaredRoute): boolean {
  const [some, others] = [methodsOf(a), methodsOf(b)]
  return some === undefined || others === undefined || some.some(method => others.includes(method))
}

const hostsOf = ({ keys }: DeclaredRoute) => (keys.hosts ?? []).map(parseHost)

function methodsOf({ keys: { methods } }: DeclaredRoute): string[] | undefined {
  return methods?.includes('GET') ? [...methods, 'HEAD'] : methods
}
