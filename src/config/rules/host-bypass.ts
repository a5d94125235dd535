// Finds routes that let a request bypass the guards of another route. The guarded route is limited to some hosts. For
// the bypass, the request only has to name a different host.
import { type Diagnostic, mostProblems } from '../diagnostics.ts'
import { isGatewayPath, isMoreSpecific, overlap, type PathPattern } from '../formats/path-pattern.ts'
import { type Leaf, PathTree, type Placed } from '../formats/path-tree.ts'
import { isWider, isWildcard, withoutWildcard } from '../formats/wildcard-hosts.ts'
import { allowedPlans } from '../plans.ts'
import { type DeclaredRoute, type SameService, sharedUpstream } from './declarations.ts'
import type { DeclaredPlans } from './declared-plans.ts'

/**
 * A guarded route can be bypassed through another route if all of this is true:
 * - The guarded route is limited to some hosts. The other route (the bypass) has no hosts, or a wildcard that is wider
 *   than one of these hosts.
 * - Both routes lead to the same service.
 * - The bypass admits a caller or an API key that the guarded route refuses, or it does not count a use that the
 *   guarded route counts. A use of another quota or a lower cost does not count as the same use.
 * - The two routes have a path and a method in common. With the host of the guarded route, the request reaches the
 *   guarded route. With a host that no route names, or that only the wider wildcard matches, it reaches the bypass.
 *
 * There is no bypass if the other route has the more specific path. It then also receives the requests for the hosts of
 * the guarded route, so the path was never guarded there. There is also no bypass if third routes receive every path
 * that both patterns match.
 */
export function checkHostBypasses(
  routes: readonly DeclaredRoute[],
  isSame: SameService,
  plans: DeclaredPlans,
): Diagnostic[] {
  if (!routes.some(({ hosts }) => hosts !== undefined && hosts.length > 0)) return []
  const table = createTable(routes, createOutcomes(plans))
  return table.placed
    .filter(({ hosts, route }) => hosts.length > 0 && route.guardsKnown)
    .flatMap(guarded =>
      takeUpTo(mostProblems, table.lessSpecific(guarded), bypass => isBypass(bypass, guarded)).map(bypass =>
        guarded.route.diagnostic('path', messageOf(bypass)),
      ),
    )

  function isBypass(bypass: PlacedRoute, guarded: PlacedRoute): boolean {
    const [one, other] = [bypass.route.keys.upstream, guarded.route.keys.upstream]
    if (!isWeaker(bypass, guarded)) return false
    return isSame(one, other) && shareMethod(bypass.route, guarded.route) && table.isOpen(bypass, guarded)
  }
}

function messageOf({ route, hosts }: PlacedRoute): string {
  const { label } = route
  const remedy =
    hosts.length === 0
      ? `add hosts or the same guards to ${label}`
      : `in ${label}, replace the wildcard with narrower hosts, or add the same guards`
  return `requests for this path with another host reach ${label}, which has weaker guards and ${sharedUpstream(route)}; ${remedy}`
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
  readonly outcome: Outcome
  readonly index: number
}

interface Table {
  /** Routes with a valid path and valid hosts, in file order. */
  readonly placed: readonly PlacedRoute[]
  /**
   * Returns the routes without hosts, or with a wider wildcard, whose path overlaps with the path of the guarded route.
   * Leaves out routes with a more specific path.
   */
  lessSpecific(guarded: PlacedRoute): PlacedRoute[]
  /**
   * Whether there is a path that leads to the guarded route with one of its hosts, and to the bypass with a host that no
   * route names. If the bypass has hosts, only a wildcard that is wider than the host of the guarded route counts.
   */
  isOpen(bypass: PlacedRoute, guarded: PlacedRoute): boolean
}

function createTable(routes: readonly DeclaredRoute[], outcomeOf: (route: DeclaredRoute) => Outcome): Table {
  const all = new PathTree<PlacedRoute>()
  const bypasses = new PathTree<PlacedRoute>()
  const leaves = new Map<PlacedRoute, Leaf<PlacedRoute>>()
  const lengths = new Set<number>()
  for (const [index, route] of routes.entries()) {
    const { pattern, hosts } = route
    if (pattern === undefined || hosts === undefined) continue
    const placed = { route, outcome: outcomeOf(route), pattern, hosts, index }
    leaves.set(placed, all.insert(placed))
    if (route.guardsKnown && (hosts.length === 0 || hosts.some(isWildcard))) bypasses.insert(placed)
    // Paths with one more segment than the pattern are tested too. A route with as many segments as the pattern, but
    // without `/*`, does not match these longer paths.
    lengths.add(pattern.segments.length).add(pattern.segments.length + 1)
  }
  const sorted = [...lengths].sort((a, b) => a - b)
  const placed = [...leaves.keys()]
  const label = unusedLabel(placed)
  /** @param host undefined for a host that no route names */
  const routesTo = (route: PlacedRoute, host: string | undefined, path: readonly string[]) => {
    // For a wildcard, this host matches as few other routes as possible, as the path from `pathOfBoth` does.
    const named = host?.replace('*', label) ?? ''
    return all.find(named, path) === leaves.get(route)?.fitting(named)
  }
  return {
    placed,
    lessSpecific: guarded => lessSpecific(bypasses, guarded).sort((a, b) => a.index - b.index),
    isOpen: (bypass, guarded) =>
      sorted.some(length => {
        const path = pathOfBoth(bypass.pattern, guarded.pattern, length)
        if (path === undefined || isGatewayPath(path)) return false
        const openings = bypass.hosts.length === 0 ? [undefined] : bypass.hosts.filter(isWildcard)
        return openings.some(
          wider =>
            routesTo(bypass, wider, path) &&
            guarded.hosts.some(
              host => (wider === undefined || isWider(wider, host)) && routesTo(guarded, host, path),
            ),
        )
      }),
  }
}

/** Returns a label that no host of the routes contains. */
function unusedLabel(routes: readonly PlacedRoute[]): string {
  const used = new Set(routes.flatMap(({ hosts }) => hosts.flatMap(host => host.split('.'))))
  let number = 0
  while (used.has(`x${number}`)) number++
  return `x${number}`
}

/** A path segment that no route contains. */
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

function lessSpecific(bypasses: PathTree<PlacedRoute>, { pattern, hosts }: PlacedRoute): PlacedRoute[] {
  // A route with several wildcards may be found several times.
  const found = new Set<PlacedRoute>()
  /** `isBehind` is true if, at an earlier segment, the tree's path has a parameter and the pattern has a literal. */
  const waiting = [{ node: bypasses, depth: 0, isBehind: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth, isBehind } = next
    for (const leaf of [node.exact, node.wildcard]) {
      for (const route of leaf === undefined ? [] : withWiderHosts(leaf, hosts)) {
        // All routes of a leaf match the same paths.
        if (!overlap(route.pattern, pattern) || isMoreSpecific(route.pattern, pattern)) break
        found.add(route)
      }
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
  return [...found]
}

function withWiderHosts({ anyHost, byWildcard }: Leaf<PlacedRoute>, hosts: readonly string[]): PlacedRoute[] {
  if (byWildcard === undefined) return anyHost
  return [...anyHost, ...hosts.flatMap(host => byWildcard.matching(withoutWildcard(host)).flat())]
}

/** A set of callers, with one bit per caller. A file may have a million pairs of routes to compare, and 100 plans. */
type Callers = bigint

interface Outcome {
  readonly letIn: Callers
  /** The callers whose requests count as daily uses. */
  readonly countedDaily: Callers
  /** The callers whose requests count for the quota of the route. */
  readonly countedQuota: Callers
}

/**
 * Returns a function that finds the outcome of a route for each kind of caller. The kinds are callers without a
 * credential or with a bad credential, and users of each plan with and without a verified email.
 */
function createOutcomes(plans: DeclaredPlans): (route: DeclaredRoute) => Outcome {
  const users = plans.names.flatMap(plan => [true, false].map(isVerified => ({ plan, isVerified })))
  const callers = ['anonymous', 'rejected', ...users] as const
  type Caller = (typeof callers)[number]
  const setOf = (includes: (caller: Caller) => boolean): Callers =>
    BigInt(`0b${callers.map(caller => (includes(caller) ? 1 : 0)).join('')}`)
  const usersOf = (includes: (plan: string) => boolean) =>
    setOf(caller => typeof caller === 'object' && includes(caller.plan))
  return ({ keys: { auth = 'required', plans: listed, verified, free_daily }, quota }) => {
    const allowed = allowedPlans(plans, { plans: listed, quota })
    const letsIn = (caller: Caller): boolean => {
      if (auth === 'none') return true
      if (caller === 'rejected') return false
      if (caller === 'anonymous') return auth === 'optional' && allowed === undefined && !verified
      return (allowed === undefined || allowed.includes(caller.plan)) && (!verified || caller.isVerified)
    }
    return {
      letIn: setOf(letsIn),
      countedDaily: usersOf(plan => free_daily === true && plan === 'free'),
      countedQuota: usersOf(plan => Number.isFinite(quota && plans.allowance(plan, quota.name)?.limit)),
    }
  }
}

function isWeaker(lax: PlacedRoute, guarded: PlacedRoute): boolean {
  const { letIn, countedDaily, countedQuota } = guarded.outcome
  const [own, other] = [lax.route.quota, guarded.route.quota]
  const countsQuota = own?.name === other?.name && (own?.cost ?? 0) >= (other?.cost ?? 0)
  const uncounted = (lax.route.keys.free_daily ? 0n : countedDaily) | (countsQuota ? 0n : countedQuota)
  if ((lax.outcome.letIn & (~letIn | uncounted)) !== 0n) return true
  // A route whose plans have no allowance lets no user in, and therefore no API key.
  return lax.outcome.letIn !== 0n && letsMoreKeysIn(lax.route.keys, guarded.route.keys)
}

/**
 * Returns whether some API key passes the guards of the lax route, but is refused by the guarded route. A route without
 * `scope` accepts only keys without scopes, which every route with `scope` accepts too.
 */
function letsMoreKeysIn(lax: DeclaredRoute['keys'], guarded: DeclaredRoute['keys']): boolean {
  if (guarded.auth === 'none' || lax.bearer_only) return false
  return guarded.bearer_only === true || (lax.scope !== undefined && lax.scope !== guarded.scope)
}

function shareMethod({ methods: some }: DeclaredRoute, { methods: others }: DeclaredRoute): boolean {
  if (some === undefined || others === undefined) return false
  return some === 'all' || others === 'all' || some.some(method => others.includes(method))
}
