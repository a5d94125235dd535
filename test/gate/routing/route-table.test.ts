// Compares the route table with a simple reference matcher.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Route } from '../../../src/gate/routing/route.ts'
import { createRouteTable, type Match } from '../../../src/gate/routing/route-table.ts'
import { runs } from '../../support/property-runs.ts'
import { routeWith } from '../a-route.ts'

const often = { seed: 20_261_121, numRuns: runs(2_000) }

const segment = fc.constantFrom('a', 'b', ':p')
const hosts = fc.constantFrom<string[]>([], [], ['h1'], ['h2'], ['h1', 'h2'])
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
  fc.constantFrom('h1', 'h2', 'h3', ''),
  fc.array(fc.constantFrom('a', 'b', 'c', '*', ':p0'), { maxLength: 4 }),
)

describe('the route table', () => {
  it('has the same result as the reference matcher for every set of routes and every request', () => {
    fc.assert(
      fc.property(sets, fc.array(request, { minLength: 10, maxLength: 10 }), (routes, requests) => {
        const table = createRouteTable(routes)
        for (const [method, host, segments] of requests) {
          expect(named(table.match(method, host, segments))).toEqual(
            named(reference(routes, method, host, segments)),
          )
        }
      }),
      often,
    )
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

  it('treats segments like `__proto__` and `constructor` as ordinary segments', () => {
    const table = createRouteTable([])
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect(table.match('GET', name, [name, name])).toEqual({ kind: 'none' })
    }
  })
})

function named(match: Match<Route>) {
  if (match.kind === 'method') return { kind: match.kind, allow: match.allow }
  return match.kind === 'route' ? { kind: match.kind, route: match.route.name } : match
}

/** The reference matcher. Filters routes by host and path, sorts them by precedence, and then chooses by method. */
function reference(
  routes: readonly Route[],
  method: string,
  host: string,
  segments: readonly string[],
): Match<Route> {
  const fitting = routes
    .filter(route => (route.hosts.length === 0 || route.hosts.includes(host)) && matches(route, segments))
    .sort((a, b) => compare(a, b))
  const [best] = fitting
  if (best === undefined) return { kind: 'none' }
  const equals = fitting.filter(route => compare(route, best) === 0)
  const route = equals.find(
    ({ allowedMethods }) => allowedMethods === undefined || allowedMethods.has(method),
  )
  if (route !== undefined) return { kind: 'route', route }
  const allow = [...new Set(equals.flatMap(({ allowedMethods }) => [...(allowedMethods ?? [])]))]
    .sort()
    .join(', ')
  return { kind: 'method', allow, route: best }
}

function matches({ pattern }: Route, segments: readonly string[]): boolean {
  if (
    pattern.wildcard ? segments.length < pattern.segments.length : segments.length !== pattern.segments.length
  ) {
    return false
  }
  return pattern.segments.every((part, i) => part.kind === 'param' || part.value === segments[i])
}

/** Compares the kinds of the segments, then the hosts. @returns a negative number if `a` has precedence over `b` */
function compare(a: Route, b: Route): number {
  const rank = ({ pattern }: Route, i: number) => {
    const part = pattern.segments[i]
    if (part === undefined) return pattern.wildcard ? 0 : 1
    return part.kind === 'literal' ? 3 : 2
  }
  for (let i = 0; i <= Math.max(a.pattern.segments.length, b.pattern.segments.length); i++) {
    const difference = rank(b, i) - rank(a, i)
    if (difference !== 0) return difference
  }
  return Math.min(b.hosts.length, 1) - Math.min(a.hosts.length, 1)
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
