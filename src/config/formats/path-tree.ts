// Stores the paths of routes as a tree. Finds the routes for a request by its path segments, then by its host.
import type { PathPattern } from './path-pattern.ts'
import { isWildcard, WildcardMap } from './wildcard-hosts.ts'

export interface Placed {
  readonly pattern: PathPattern
  /** Exact hosts and wildcards, in lower case, without port and final dot. An empty list means every host. */
  readonly hosts: readonly string[]
}

export class PathTree<Route extends Placed> {
  readonly literals = new Map<string, PathTree<Route>>()
  param: PathTree<Route> | undefined
  /**
   * `exact` contains the routes whose path ends at this node. `wildcard` contains the routes whose path continues from
   * this node with `/*`.
   */
  exact: Leaf<Route> | undefined
  wildcard: Leaf<Route> | undefined

  insert(route: Route): Leaf<Route> {
    let node: PathTree<Route> = this
    for (const segment of route.pattern.segments) {
      if (segment.kind === 'param') {
        node.param ??= new PathTree()
        node = node.param
      } else {
        let next = node.literals.get(segment.value)
        if (next === undefined) {
          next = new PathTree()
          node.literals.set(segment.value, next)
        }
        node = next
      }
    }
    const end = route.pattern.wildcard ? 'wildcard' : 'exact'
    node[end] ??= new Leaf()
    node[end].add(route)
    return node[end]
  }

  /**
   * Finds the most specific path that matches and has routes for the host. Returns the routes of this path.
   * @param segments the segments, percent-decoded once and lower-cased
   */
  find(host: string, segments: readonly string[]): readonly Route[] | undefined {
    return descend(this, host, segments, 0)
  }
}

/** The routes of one path. An exact host wins over a wildcard. The longest wildcard wins over routes without hosts. */
export class Leaf<Route extends Placed> {
  readonly byHost = new Map<string, Route[]>()
  /** Undefined if no route of the path has a wildcard host. Requests then need no wildcard lookup. */
  byWildcard: WildcardMap<Route> | undefined
  readonly anyHost: Route[] = []

  add(route: Route): void {
    if (route.hosts.length === 0) this.anyHost.push(route)
    for (const host of route.hosts) {
      if (isWildcard(host)) {
        this.byWildcard ??= new WildcardMap()
        this.byWildcard.add(host, route)
        continue
      }
      const named = this.byHost.get(host)
      if (named === undefined) this.byHost.set(host, [route])
      else named.push(route)
    }
  }

  fitting(host: string): readonly Route[] | undefined {
    return (
      this.byHost.get(host) ??
      this.byWildcard?.matching(host).at(-1) ??
      (this.anyHost.length > 0 ? this.anyHost : undefined)
    )
  }
}

/**
 * Prefers a literal over `:param`, and `:param` over `*`. Backtracks if the rest of the path or the host does not
 * match.
 */
function descend<Route extends Placed>(
  node: PathTree<Route>,
  host: string,
  segments: readonly string[],
  depth: number,
): readonly Route[] | undefined {
  const segment = segments[depth]
  if (segment === undefined) return node.exact?.fitting(host) ?? node.wildcard?.fitting(host)
  const literal = node.literals.get(segment)
  return (
    (literal && descend(literal, host, segments, depth + 1)) ??
    (node.param && descend(node.param, host, segments, depth + 1)) ??
    node.wildcard?.fitting(host)
  )
}
