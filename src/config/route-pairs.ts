// What two routes may not be to each other: one the other's back door.
import type { DeclaredRoute } from './declared-route.ts'
import { covers, isMoreSpecific, overlap } from './path-pattern.ts'
import type { Fault } from './problem.ts'
import type { SameService } from './shared-targets.ts'

export function checkBackDoors(routes: readonly DeclaredRoute[], isSame: SameService): Fault[] {
  const doors = routes.filter(servesEveryHost)
  const guarded = routes.filter(route => !servesEveryHost(route))
  return guarded.flatMap(route =>
    doors
      .filter(other => isBackDoor(other, route, routes, isSame))
      .map(door =>
        route.fault(
          'path',
          `is open to other hosts through ${door.label}, which leads to the same upstream under weaker guards; give that one hosts or these guards`,
        ),
      ),
  )
}

/**
 * With another `Host` the same paths of the same upstream are served by `lax`, which asks for less than `guarded`.
 * Not where a third route stands in between: whatever it declares, nothing falls through it to a wider path.
 */
function isBackDoor(
  lax: DeclaredRoute,
  guarded: DeclaredRoute,
  routes: readonly DeclaredRoute[],
  isSame: SameService,
): boolean {
  const { pattern: open } = lax
  const { pattern: shut } = guarded
  if (!open || !shut || !lax.guardsKnown || !guarded.guardsKnown) return false
  if (!servesEveryHost(lax) || guarded.hosts === undefined || servesEveryHost(guarded)) return false
  const [behindOpen, behindShut] = [lax.keys.upstream, guarded.keys.upstream]
  if (behindOpen === undefined || behindShut === undefined || !isSame(behindOpen, behindShut)) return false
  if (!asksForLess(lax, guarded)) return false
  if (!overlap(open, shut) || !shareMethod(lax, guarded)) return false
  return !routes.some(
    between =>
      between.pattern !== undefined &&
      servesEveryHost(between) &&
      (covers(between.pattern, shut) || covers(between.pattern, open)) &&
      isMoreSpecific(between.pattern, open),
  )
}

const servesEveryHost = ({ hosts }: DeclaredRoute) => hosts?.length === 0

function asksForLess({ keys: lax }: DeclaredRoute, { keys: guarded }: DeclaredRoute): boolean {
  const strength = { none: 0, optional: 1, required: 2 }
  const { plans } = guarded
  return (
    strength[lax.auth ?? 'required'] < strength[guarded.auth ?? 'required'] ||
    (guarded.free_daily === true && lax.free_daily !== true) ||
    (plans !== undefined && !lax.plans?.every(plan => plans.includes(plan)))
  )
}

function shareMethod({ methods: some }: DeclaredRoute, { methods: others }: DeclaredRoute): boolean {
  if (some === undefined || others === undefined) return false
  return some === 'all' || others === 'all' || some.some(method => others.includes(method))
}
