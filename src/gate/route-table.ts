// Which route a request belongs to: segment by segment from the left, then the host, then the method (CONTRACT §2).
import type { Route } from './route.ts'

export type Match =
  | { readonly kind: 'route'; readonly route: Route }
  /** The most specific routes for path and host do not declare the method; nothing wider is asked. `route` is one of them. */
  | { readonly kind: 'method'; readonly allow: string; readonly route: Route }
  | { readonly kind: 'none'; readonly route?: undefined }

export interface RouteTable {
  /**
   * @param host lower case, without port and final dot
   * @param segments decoded once and folded, as `readTarget` gives them
   */
  match(method: string, host: string, segments: readonly string[]): Match
}

/** One tree for all methods: a tree per method would let a method fall through to a less specific path. */
export function createRouteTable(routes: readonly Route[]): RouteTable {
  const root = new Node()
  for (const route of routes) insert(root, route)
  return {
    match(method, host, segments) {
      const candidates = descend(root, host, segments, 0)
      if (candidates === undefined) return { kind: 'none' }
      for (const route of candidates) {
        if (route.allowed === undefined || route.allowed.has(method)) return { kind: 'route', route }
      }
      return { kind: 'method', allow: allowOf(candidates), route: candidates[0] as Route }
    },
  }
}

class Node {
  readonly literals = new Map<string, Node>()
  param: Node | undefined
  /** Routes that end here, and routes that end here in `/*`. */
  exact: Leaf | undefined
  wildcard: Leaf | undefined
}

/** The routes of one path: those that name a host come before those that name none. */
class Leaf {
  readonly byHost = new Map<string, Route[]>()
  readonly anyHost: Route[] = []

  add(route: Route): void {
    if (route.hosts.length === 0) this.anyHost.push(route)
    for (const host of route.hosts) {
      const named = this.byHost.get(host)
      if (named === undefined) this.byHost.set(host, [route])
      else named.push(route)
    }
  }

  fitting(host: string): readonly Route[] | undefined {
    return this.byHost.get(host) ?? (this.anyHost.length > 0 ? this.anyHost : undefined)
  }
}

function insert(root: Node, route: Route): void {
  let node = root
  for (const segment of route.pattern.segments) {
    if (segment.kind === 'param') {
      node.param ??= new Node()
      node = node.param
    } else {
      let next = node.literals.get(segment.value)
      if (next === undefined) {
        next = new Node()
        node.literals.set(segment.value, next)
      }
      node = next
    }
  }
  if (route.pattern.wildcard) {
    node.wildcard ??= new Leaf()
    node.wildcard.add(route)
  } else {
    node.exact ??= new Leaf()
    node.exact.add(route)
  }
}

/** Literal over `:param` over `*`, and back to the next choice where the rest of the path or the host fits nothing. */
function descend(
  node: Node,
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

function allowOf(routes: readonly Route[]): string {
  return [...new Set(routes.flatMap(route => [...(route.allowed ?? [])]))].sort().join(', ')
}
