// Finds routes that let requests for other hosts bypass the guards of a route limited to some hosts (CONTRACT §2).
import { type Diagnostic, mostProblems } from '../diagnostics.ts'
import { isGatewayPath, isMoreSpecific, overlap, type PathPattern } from '../formats/path-pattern.ts'
import { type Leaf, PathTree, type Placed } from '../formats/path-tree.ts'
import type { DeclaredRoute, SameService } from './declarations.ts'

/**
 * A guarded route can be bypassed through another if all of this is true:
 * - it is limited to some hosts, and the other route (the bypass) is limited to none;
 * - both lead to the same service;
 * - the bypass admits some caller whom the guarded route refuses, or does not count a use that the guarded one counts;
 * - there is a path, and a method that both have, which one of its hosts sends to the guarded route and every host
 *   that no route names sends to the bypass.
 *
 * So there is none if the bypass's path is the more specific one (it then takes the path from the guarded route's own
 * hosts too, which were never guarded there), and none if third routes take every such path from either of the two.
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
            `is open to other hosts through ${label}, which leads to the same upstream under weaker guards; give that one hosts or these guards`,
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

/** Stops once enough are found to report: in some files thousands of routes each are the bypass of thousands. */
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
  /** Routes for every host whose path matches some of the same paths and is not the more specific one. */
  lessSpecific(pattern: PathPattern): PlacedRoute[]
  /** Whether hosts that no route names send some path to the bypass, and one of its own hosts to the guarded route. */
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
    // At one segment more, a path without `/*` no longer matches.
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

/** A host that no route names, and a segment that none has. */
const unnamed = ''
const unusedSegment = '\0'

/**
 * A path of the given length that both patterns match, and as few other routes as possible: where neither has a
 * literal, its segment is one that no route names. Third routes that take it from either of the two also take every
 * other path of that length that both match.
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
  /** `isBehind`: at an earlier segment the tree's path has a parameter where the pattern has a literal. */
  const waiting = [{ node: bypasses, depth: 0, isBehind: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { node, depth, isBehind } = next
    for (const leaf of [node.exact, node.wildcard]) {
      const [first] = leaf?.anyHost ?? []
      if (!leaf || !first || !overlap(first.pattern, pattern)) continue
      if (!isMoreSpecific(first.pattern, pattern)) found.push(...leaf.anyHost)
    }
    const segment = pattern.segments[depth]
    // A longer path is more specific, or does not match.
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

/** No credential, a bad one, and the users of each plan, with a verified email and without. */
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
