// Compares the route table with a simple reference matcher.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Route } from '../../../src/gate/routing/route.ts'
import { allowOf, createRouteTable, type Match } from '../../../src/gate/routing/route-table.ts'
import { routeWith } from '../a-route.ts'

const often = { seed: 20_261_121, numRuns: 2_000 }

const segment = fc.constantFrom('a', 'b', ':p')
const hosts = fc.oneof(
  fc.constant<string[]>([]),
  fc.uniqueArray(fc.constantFrom('a.t', 'b.a.t', '*.t', '*.a.t', '*.b.a.t', '*.u'), {
    minLength: 1,
    maxLength: 3,
  }),
)
const methods = fc.constantFrom<string[] | undefined>(
  undefined,
  ['GET'],
  ['POST'],
  ['GET', 'POST'],
  ['PUT', 'DELETE'],
)
const declared = fc
  .record({ segments: fc.array(segment, { maxLength: 3 }), wildcard: fc.boolean(), hosts, methods })
  .map(({ segments, wildcard, hosts, methods }) => {
    const named = segments.map((part, i) => (part === ':p' ? `:p${i}` : part))
    const path = `/${[...named, ...(wildcard ? ['*'] : [])].join('/')}`
    return routeWith({
      name: `${path} ${hosts} ${methods}`,
      path,
      hosts,
      ...(methods === undefined ? {} : { methods }),
    })
  })

const sets = fc.array(declared, { maxLength: 8 }).map(withoutConflicts)
const request = fc.tuple(
  fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'OPTIONS'),
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom('a.t', 'b.a.t', 'x.t', 'x.a.t', 'x.b.a.t', 'y.x.b.a.t', 'x.u', 't', ''),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'xa.t',
        '.t',
        '.a.t',
        'x..a.t',
        'x.a.t.',
        '*.a.t',
        'x%2f.a.t',
        '[::1]',
        '10.0.0.1',
      ),
    },
  ),
  fc.array(fc.constantFrom('a', 'b', 'c', '*', ':p0'), { maxLength: 4 }),
)

describe('the route table', () => {
  it('has the same result as the reference matcher for every set of routes and every request', () => {
    const kinds = { route: new Set<number | undefined>(), method: new Set<number | undefined>() }
    fc.assert(
      fc.property(sets, fc.array(request, { minLength: 5, maxLength: 5 }), (routes, requests) => {
        const table = createRouteTable(routes)
        for (const [method, host, segments] of requests) {
          const expected = reference(routes, method, host, segments)
          expect(named(table.match(method, host, segments))).toEqual(named(expected))
          if (expected.kind !== 'none') kinds[expected.kind].add(kindOf(expected.route, host))
        }
      }),
      often,
    )
    // The test covers enough only if every kind of host led to a matched route, and also to a refused method.
    const everyKind = new Set([0, 3, 5, 7, Number.POSITIVE_INFINITY])
    expect(kinds).toEqual({ route: everyKind, method: everyKind })
  })

  it('has the same result, whatever the order in which the routes are declared', () => {
    fc.assert(
      fc.property(sets, request, (routes, [method, host, segments]) => {
        const forwards = createRouteTable(routes).match(method, host, segments)
        const backwards = createRouteTable([...routes].reverse()).match(method, host, segments)
        expect(named(forwards)).toEqual(named(backwards))
      }),
      often,
    )
  })

  it('lets the wildcard *.example.com match only hosts with at least one valid label before .example.com', () => {
    const { match } = createRouteTable([routeWith({ hosts: ['*.example.com'] })])
    const longest = `${'a.'.repeat(120)}b.example.com`
    const label = 'a'.repeat(63)
    const matching = ['a.example.com', 'a.b.example.com', '_a.example.com', 'a--b.example.com', longest]
    for (const host of [...matching, `${label}.example.com`]) {
      expect([host, match('GET', host, []).kind]).toEqual([host, 'route'])
    }
    expect(longest).toHaveLength(253)
    for (const host of [
      ...[
        'example.com',
        '.example.com',
        'a..example.com',
        '.a.example.com',
        'a.example.com.',
        'my-example.com',
      ],
      ...['*.example.com', 'a%2e.example.com', 'a!.example.com', '-.example.com', 'a.example.com.evil.test'],
      ...['', '.', 'com', '10.0.0.1', '[::1]', `${label}a.example.com`, `a.${longest}`, 'a.example.comm'],
    ]) {
      expect([host, match('GET', host, []).kind]).toEqual([host, 'none'])
    }
  })

  it('treats segments like `__proto__` and `constructor` as ordinary segments', () => {
    const table = createRouteTable([])
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect(table.match('GET', name, [name, name])).toEqual({ kind: 'none' })
    }
  })
})

function named(match: Match<Route>) {
  if (match.kind === 'method') return { kind: match.kind, allow: allowOf(match.routes) }
  return match.kind === 'route' ? { kind: match.kind, route: match.route.name } : match
}

/**
 * The reference matcher. It selects the most specific path that has a route for the host. On this path, routes with an
 * exact host come first, then routes with the longest wildcard, then routes without hosts. The method decides last.
 */
function reference(
  routes: readonly Route[],
  method: string,
  host: string,
  segments: readonly string[],
): Match<Route> {
  let best: Route[] = []
  for (const route of routes) {
    if (!matches(route, segments) || kindOf(route, host) === undefined) continue
    const order = best[0] === undefined ? -1 : compare(route, best[0], host)
    if (order < 0) best = [route]
    else if (order === 0) best.push(route)
  }
  const [first] = best
  if (first === undefined) return { kind: 'none' }
  for (const route of best) {
    if (route.allowedMethods?.has(method) ?? true) return { kind: 'route', route }
  }
  return { kind: 'method', routes: best, route: first }
}

/** Returns how well a route matches the host: a higher number is better. Undefined if the route does not match. */
function kindOf({ hosts }: Route, host: string): number | undefined {
  if (hosts.length === 0) return 0
  if (hosts.includes(host) && !host.startsWith('*')) return Number.POSITIVE_INFINITY
  const lengths = hosts
    .filter(one => one.startsWith('*') && isBelow(host, one.slice(1)))
    .map(one => one.length)
  return lengths.length === 0 ? undefined : Math.max(...lengths)
}

/** Returns whether the host consists of one or more labels, followed by `end`. */
function isBelow(host: string, end: string): boolean {
  return host.endsWith(end) && /^[a-z]+(\.[a-z]+)*$/.test(host.slice(0, -end.length))
}

function matches({ pattern }: Route, segments: readonly string[]): boolean {
  if (
    pattern.wildcard ? segments.length < pattern.segments.length : segments.length !== pattern.segments.length
  ) {
    return false
  }
  return pattern.segments.every((part, i) => part.kind === 'param' || part.value === segments[i])
}

/**
 * Compares the kinds of the segments. If they are equal, compares the hosts.
 * @returns a negative number if `a` has precedence over `b`
 */
function compare(a: Route, b: Route, host: string): number {
  const rank = ({ pattern }: Route, i: number) => {
    const part = pattern.segments[i]
    if (part === undefined) return pattern.wildcard ? 0 : 1
    return part.kind === 'literal' ? 3 : 2
  }
  for (let i = 0; i <= Math.max(a.pattern.segments.length, b.pattern.segments.length); i++) {
    const difference = rank(b, i) - rank(a, i)
    if (difference !== 0) return difference
  }
  const [kindOfA, kindOfB] = [kindOf(a, host) ?? 0, kindOf(b, host) ?? 0]
  return kindOfA === kindOfB ? 0 : kindOfB - kindOfA
}

/** Removes routes that can match the same request as an earlier route. `check` refuses these routes. */
function withoutConflicts(routes: readonly Route[]): Route[] {
  const accepted: Route[] = []
  for (const route of routes) {
    const conflicts = accepted.some(
      other =>
        shape(other) === shape(route) &&
        (other.hosts.length === 0 || route.hosts.length === 0
          ? other.hosts.length === route.hosts.length
          : other.hosts.some(host => route.hosts.includes(host))) &&
        (other.allowedMethods === undefined ||
          route.allowedMethods === undefined ||
          [...other.allowedMethods].some(method => route.allowedMethods?.has(method))),
    )
    if (!conflicts) accepted.push(route)
  }
  return accepted
}

const shape = ({ pattern }: Route) =>
  [
    ...pattern.segments.map(part => (part.kind === 'param' ? ':' : part.value)),
    pattern.wildcard ? '*' : '',
  ].join('/')
