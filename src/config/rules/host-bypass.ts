// Finds routes that let a request bypass the guards of another route. The guarded route is limited to some hosts. For
// the bypass, the request only has to name a different host.
import { type Diagnostic, mostProblems } from '../diagnostics.ts'
import { isGatewayPath, isMoreSpecific, overlap, type PathPattern } from '../formats/path-pattern.ts'
import { type Leaf, PathTree, type Placed } from '../formats/path-tree.ts'
import type { DeclaredRoute, SameService } from './declarations.ts'

/**
 * A guarded route can be bypassed through another route if all of this is true:
 * - The guarded route is limited to some hosts, and the other route (the bypass) is not.
 * - Both routes lead to the same service.
 * - The bypass admits a caller whom the guarded route refuses, or it does not count a use that the guarded route
 *   counts.
 * - The two routes have a path and a method in common. With a host of the guarded route, the request reaches the
 *   guarded route. With a host that no route names, it reaches the bypass.
 *
 * There is no bypass if the other route has the more specific path. It then also receives the requests for the hosts of
 * the guarded route, so the path was never guarded there. There is also no bypass if third routes receive every path
 * that both patterns match.
 */
export function checkHostBypasses(routes: readonly DeclaredRoute[], isSame: SameService): Diagnostic[] {
  const table = createTable(routes)
  return table.placed
    .filter(({ hosts, route }) => hosts.length > 0 && route.guardsKnown)
    .flatMap(guarded =>
      takeUpTo(mostProblems, table.lessSpecific(guarded.pattern), bypass => isBypass(bypass, guarded)).map(
        ({ route: { label } }) =>
          guarded.route.diagnostic(
            'path',
            `requests for this path with another host reach ${label}, which has weaker guards and the same upstream; add hosts or the same guards to ${label}`,
          ),
      ),
    )

  function isBypass(bypass: PlacedRoute, guarded: PlacedRoute): boolean {
    const [one, other] = [bypass.route.keys.upstream, guarded.route.keys.upstream]
    if (one === undefined || other === undefined || !hasWeakerGuards(bypass.route, guarded.route))
      return false
    return isSame(one, other) && shareMethod(bypass.route, guarded.route) && table.isOpen(bypass, guarded)
  }
}

/** Stops at the limit, because a file may have thousands of routes, each bypassed through thousands of others. */
function takeUpTo<T>(limit: number, all: readonly T[], isOne: (one: T) => boolean): T[] {
  const found: T[] = []
  for (const one of all) {
    if (found.length === limit) break
    if (isOne(one)) found.push(one)
  }
  return found
}

interface PlacedRoute extends Placed {
  readonly route: DeclaredRoute
  readonly index: number
}

interface Table {
  /** Routes with a valid path and valid hosts, in file order. */
  readonly placed: readonly PlacedRoute[]
  /**
   * Returns the routes without hosts whose path overlaps with the pattern. Leaves out routes with a more specific path.
   */
  lessSpecific(pattern: PathPattern): PlacedRoute[]
  /**
   * Whether there is a path that leads to the bypass with a host that no route names, and to the guarded route with one
   * of its hosts.
   */
  isOpen(bypass: PlacedRoute, guarded: PlacedRoute): boolean
}

function createTable(routes: readonly DeclaredRoute[]): Table {
  const all = new PathTree<PlacedRoute>()
  const bypasses = new PathTree<PlacedRoute>()
  const leaves = new Map<PlacedRoute, Leaf<PlacedRoute>>()
  const lengths = new Set<number>()
  for (const [index, route] of routes.entries()) {
    const { pattern, hosts } = route
    if (pattern === undefined || hosts === undefined) continue
    const placed = { route, pattern, hosts, index }
    leaves.set(placed, all.insert(placed))
    if (hosts.length === 0 && route.guardsKnown) bypasses.insert(placed)
    // Paths with one more segment than the pattern are tested too. A route with as many segments as the pattern, but
    // without `/*`, does not match these longer paths.
    lengths.add(pattern.segments.length).add(pattern.segments.length + 1)
  }
  const sorted = [...lengths].sort((a, b) => a - b)
  const routesTo = (route: PlacedRoute, host: string, path: readonly string[]) =>
    all.find(host, path) === leaves.get(route)?.fitting(host)
  return {
    placed: [...leaves.keys()],
    lessSpecific: pattern => lessSpecific(bypasses, pattern).sort((a, b) => a.index - b.index),
    isOpen: (bypass, guarded) =>
      sorted.some(length => {
        const path = pathOfBoth(bypass.pattern, guarded.pattern, length)
        if (path === undefined || isGatewayPath(path) || !routesTo(bypass, unnamed, path)) return false
        return guarded.hosts.some(host => routesTo(guarded, host, path))
      }),
  }
}

/** A host and a path segment that no route contains. */
const unnamed = ''
const unusedSegment = '\0'

/**
 * Returns a path of the given length that matches both patterns and as few other routes as possible. At a position
 * where neither pattern has a literal, the path has a segment that no route contains. So if a third route receives this
 * path, it receives every path of this length that both patterns match.
 */
function pathOfBoth(a: PathPattern, b: PathPattern, length: number): string[] | undefined {
  const fits = ({ segments, wildcard }: PathPattern) =>
    wildcard ? segments.length <= length : segments.length === length
  if (!fits(a) || !fits(b)) return undefined
  return Array.from({ length }, (_, index) => literalAt(a, index) ?? literalAt(b, index) ?? unusedSegment)
}

function literalAt({ segments }: PathPattern, index: number): string | undefined {
  const segment = segments[index]
  return segment?.kind === 'literal' ? segment.value : undefined
}

function lessSpecific(bypasses: PathTree<PlacedRoute>, pattern: PathPattern): PlacedRoute[] {
  const found: PlacedRoute[] = []
  /** `isBehind` is true if, at an earlier segment, the tree's path has a parameter and the pattern has a literal. */
  const waiting = [{ node: bypasses, depth: 0, isBehind: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth, isBehind } = next
    for (const leaf of [node.exact, node.wildcard]) {
      const [first] = leaf?.anyHost ?? []
      if (!leaf || !first || !overlap(first.pattern, pattern)) continue
      if (!isMoreSpecific(first.pattern, pattern)) found.push(...leaf.anyHost)
    }
    const segment = pattern.segments[depth]
    // All routes below this node have longer paths. Each of these routes is more specific than the pattern, or does not
    // match it.
    if (segment === undefined && !(pattern.wildcard && isBehind)) continue
    const wait = (child: PathTree<PlacedRoute> | undefined, behind: boolean) => {
      if (child) waiting.push({ node: child, depth: depth + 1, isBehind: behind })
    }
    if (segment?.kind === 'literal') wait(node.literals.get(segment.value), isBehind)
    else if (isBehind) for (const child of node.literals.values()) wait(child, true)
    wait(node.param, isBehind || segment?.kind === 'literal')
  }
  return found
}

type Guards = DeclaredRoute['keys']

function hasWeakerGuards({ keys: lax }: DeclaredRoute, { keys: guarded }: DeclaredRoute): boolean {
  const isCounted = !guarded.free_daily || lax.free_daily === true
  return (
    callers.some(caller => letsIn(lax, caller) && !letsIn(guarded, caller)) ||
    (!isCounted && letsIn(lax, { plan: 'free', isVerified: true }))
  )
}

/**
 * The kinds of callers: without a credential, with a bad credential, and users of each plan with and without a verified
 * email.
 */
const callers = [
  'anonymous',
  'rejected',
  ...(['free', 'premium', 'pro'] as const).flatMap(plan =>
    [true, false].map(isVerified => ({ plan, isVerified })),
  ),
] as const

function letsIn({ auth = 'required', plans, verified }: Guards, caller: (typeof callers)[number]): boolean {
  if (auth === 'none') return true
  if (caller === 'rejected') return false
  if (caller === 'anonymous') return auth === 'optional' && plans === undefined && !verified
  return (plans === undefined || plans.includes(caller.plan)) && (!verified || caller.isVerified)
}

function shareMethod({ methods: some }: DeclaredRoute, { methods: others }: DeclaredRoute): boolean {
  if (some === undefined || others === undefined) return false
  return some === 'all' || others === 'all' || some.some(method => others.includes(method))
}
