// Finds routes that let a request bypass the guards of another route. The guarded route is limited to some hosts. For
// the bypass, the client only has to send a different host.
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
 *   guarded route counts. To count the use for another quota, or with a lower cost, is not enough.
 * - The two routes have a path and a method in common. With a host of the guarded route, the request reaches the
 *   guarded route. With a host that no route names, or that only the wider wildcard matches, the request reaches the
 *   bypass.
 *
 * There is no bypass if the other route has the more specific path. In this case, requests with a host of the guarded
 * route reach the other route too. So the guarded route never guarded these requests. There is also no bypass if
 * further routes receive all paths that match both patterns.
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

/**
 * Returns at most `limit` elements for which `isOne` is true. The search stops at the limit, because each of thousands
 * of routes may be bypassed through thousands of others.
 */
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
   * Returns the routes through which the guarded route may be bypassed. Each of them has no hosts, or a wildcard that
   * is wider than a host of the guarded route. Its path overlaps with the path of the guarded route, and is not more
   * specific.
   */
  lessSpecific(guarded: PlacedRoute): PlacedRoute[]
  /**
   * Whether the same path leads to the guarded route with one of its hosts, and to the bypass with another host. If the
   * bypass has no hosts, no route names the other host. Otherwise, the other host matches a wildcard of the bypass that
   * is wider than the host of the guarded route.
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
    // Paths with one more segment than a pattern are tested too. A third route may receive all paths with as many
    // segments as the pattern, but not the longer paths. For example, `/a` matches only one of the paths that `/a/*`
    // matches.
    lengths.add(pattern.segments.length).add(pattern.segments.length + 1)
  }
  const sorted = [...lengths].sort((a, b) => a - b)
  const placed = [...leaves.keys()]
  const label = unusedLabel(placed)
  /** @param host undefined for a host that no route names */
  const routesTo = (route: PlacedRoute, host: string | undefined, path: readonly string[]) => {
    // The `*` of a wildcard is replaced with a label that no route contains. So as few other routes as possible match
    // this host.
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
 * Returns a path with `length` segments that matches both patterns and as few other routes as possible. At a position
 * where neither pattern has a literal, the path has a segment that no route contains. So a third route that receives
 * this path receives every path of this length that matches both patterns.
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
  /**
   * If `isBehind` is true, the tree's path is already less specific than the pattern. At an earlier segment, the tree's
   * path has a parameter and the pattern has a literal.
   */
  const waiting = [{ node: bypasses, depth: 0, isBehind: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth, isBehind } = next
    for (const leaf of [node.exact, node.wildcard]) {
      for (const route of leaf === undefined ? [] : withWiderHosts(leaf, hosts)) {
        // All routes of a leaf match the same paths, so the first route decides for all of them.
        if (!overlap(route.pattern, pattern) || isMoreSpecific(route.pattern, pattern)) break
        found.add(route)
      }
    }
    const segment = pattern.segments[depth]
    // All routes below this node have longer paths than the pattern. So each of these routes is more specific than the
    // pattern, or does not overlap with it.
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

/**
 * A set of callers, with one bit per caller, so that sets are compared fast. A file may have 100 plans, and a million
 * pairs of routes to compare.
 */
type Callers = bigint

interface Outcome {
  readonly letIn: Callers
  /** The callers whose requests count as daily uses. */
  readonly countedDaily: Callers
  /** The callers whose requests count for the quota of the route. */
  readonly countedQuota: Callers
}

/**
 * Returns a function that finds the outcome of a route for each kind of caller. Two kinds are callers without a
 * credential, and callers with an invalid credential. Each plan adds two kinds: users with a verified email, and users
 * without one.
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
 * Returns whether the lax route accepts an API key that the guarded route refuses. A lax route without `scope` accepts
 * only keys without scopes. Every route with `scope` accepts these keys too.
 */
function letsMoreKeysIn(lax: DeclaredRoute['keys'], guarded: DeclaredRoute['keys']): boolean {
  if (guarded.auth === 'none' || lax.bearer_only) return false
  return guarded.bearer_only === true || (lax.scope !== undefined && lax.scope !== guarded.scope)
}

function shareMethod({ methods: some }: DeclaredRoute, { methods: others }: DeclaredRoute): boolean {
  if (some === undefined || others === undefined) return false
  return some === 'all' || others === 'all' || some.some(method => others.includes(method))
}
