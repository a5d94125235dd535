// Tests that `allow_in_path` allows only the listed ambiguities, and never a dot segment or a bypass of another route.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ambiguitiesOf,
  ambiguity,
  laxInterpretations,
  toFlags,
} from '../../../src/gate/parsing/path-ambiguity.ts'
import { parseRequestTarget } from '../../../src/gate/parsing/request-target.ts'
import { createAllowAmbiguous } from '../../../src/gate/routing/allow-ambiguous-path.ts'
import type { Route } from '../../../src/gate/routing/route.ts'
import { createRouteTable } from '../../../src/gate/routing/route-table.ts'
import { isUnder, readings } from '../../security/readings.ts'
import { runs } from '../../support/property-runs.ts'
import { routeWith } from '../a-route.ts'

const often = { seed: 20_261_121, numRuns: runs(5_000) }

type Allowance = Route['allow_in_path'][number]
const each = Object.keys(ambiguity) as (keyof typeof ambiguity)[]
const every: Allowance[] = [...each, 'double_slash']

const piece = fc.constantFrom(
  ...'/ / / // . .. %2e %2E %252e %25252e %2f %252F %5c %255c'.split(' '),
  ...'; ;x=1 %3b %253B %3f %253f %2523 % %25 %2525 %00 %2500 %20 %2520'.split(' '),
  ...'%c0%ae %25c0%25ae %e2%82%ac %25e2%2582%25ac x public PRIVATE priv%61te priv%2561te'.split(' '),
)
const target = fc
  .tuple(fc.constantFrom('/', '/public/', '/private'), fc.array(piece, { maxLength: 10 }))
  .map(([start, pieces]) => start + pieces.join(''))

/** Returns the values of `allow_in_path` that a path needs, or undefined if every route refuses the path. */
function needed(path: string): string[] | undefined {
  const read = parseRequestTarget(path)
  return read && each.filter(name => (read.ambiguities & ambiguity[name]) !== 0)
}

describe('allow_in_path', () => {
  it.each([
    ['/a/b', []],
    ['/a//b', []],
    ['/a%2fb', ['encoded_slash']],
    ['/a%2F', ['encoded_slash']],
    ['/%2f%2fa', ['encoded_slash']],
    ['/a;b=1', ['semicolon']],
    ['/a%3Bb', ['semicolon']],
    ['/;', ['semicolon']],
    ['/a.', ['trailing_dot']],
    ['/a%2e/b', ['trailing_dot']],
    ['/a%2520b', ['double_encoding']],
    ['/a%252fb', ['double_encoding']],
    ['/%2541%25zz', ['double_encoding']],
    ['/%25C3%25A9', ['double_encoding']],
    [`/%${'25'.repeat(4)}41`, ['double_encoding']],
    ['/a%20b;c', ['semicolon']],
    ['/%254z;', ['semicolon']],
    ['/100%25', []],
    ['/a%2fb;c/d./%2541', ['encoded_slash', 'semicolon', 'trailing_dot', 'double_encoding']],
    ['/a;x%2f.b', ['encoded_slash', 'semicolon']],
  ])('can allow the path %s only if it contains the values %j', (path, needs) => {
    expect(needed(path)).toEqual(needs)
  })

  it.each([
    ...'/. /.. /a/.. /a/../b /%2e /%2E%2e /.%2e/b /a/... /a/..../b'.split(' '),
    ...'/..;x /..; /.;x/b /a/%2e%2e;x /a/%2e%2e%3bx /..;/b /..%3b'.split(' '),
    ...'/..%2fb /a%2f.. /a%2f..%2fb /%2e%2e%2f /a%2f%2e /a;x=%2f..%2f /a%2f..;x%2fb /a%2f.'.split(' '),
    ...'/%252e /%252e%252e /%25252e%25252e/b /a%252f..%252fb /..%252fb /a/.%252e /%252e%252e%253bx'.split(
      ' ',
    ),
    ...'/a%255c.. /..%255cb /a/..%2520 /a/..%25253b'.split(' '),
    ...'/a%5cb /a%3fb /a%23b /a%00 /a%2500 /a%250d%250ab /a%7f /a%20 /a%2fb%20 /a\\b /a#'.split(' '),
    ...'/%25c0%25ae%25c0%25ae/b /%25ff /%c0%ae /a%2'.split(' '),
    ...[5, 10].map(times => `/%${'25'.repeat(times)}41`),
  ])('cannot allow the path %s', path => {
    expect(needed(path)).toBeUndefined()
  })

  it('allows only the ambiguities in its list', () => {
    expect(each.map(name => toFlags([name]))).toEqual(Object.values(ambiguity))
    expect([toFlags([]), toFlags(['double_slash']), toFlags(every)]).toEqual([0, 0, 15])
  })

  it('never allows a path that an upstream could interpret as a path with a dot segment', () => {
    fc.assert(
      fc.property(target, path => {
        const read = parseRequestTarget(path)
        if (read === undefined) return
        for (const lax of readings(read.path)) expect(lax.split('/')).not.toContain('..')
        // `readings` resolves dot segments, so its results no longer contain them. Therefore, this loop searches for
        // dot segments in the path itself, and again after each decoding.
        let text = read.path
        for (let i = 0; i < 6; i++) {
          const segments = text.split(/[/\\]/).map(segment => segment.replace(/[;?#].*$/s, '').trim())
          expect([path, segments.filter(segment => /^\.+$/.test(segment))]).toEqual([path, []])
          text = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
            String.fromCharCode(Number.parseInt(hex, 16)),
          )
        }
      }),
      often,
    )
  })

  it('is needed for every segment that servers could interpret in different ways', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'ab%2 .:é'), maxLength: 8 }), segment => {
        if (segment.trim() !== segment || segment === '' || ambiguitiesOf(segment) !== 0) return
        expect(laxInterpretations([segment])).toEqual([[segment]])
      }),
      often,
    )
  })
})

describe('an ambiguous path', () => {
  const open = routeWith({ name: 'open', path: '/*', allow_in_path: every })
  const shut = routeWith({ name: 'shut', path: '/private/*', auth: 'required' })
  const routes = createRouteTable([open, shut])
  const allowInPath = createAllowAmbiguous({
    isOwn: segments => segments[0] === 'own',
    routes,
    isSameService: (one, other) => one === other,
  })

  /** Returns the name of the route that receives a path, or undefined if the path is refused. */
  function wayOf(path: string, table = routes, allow = allowInPath): string | undefined {
    const read = parseRequestTarget(path)
    if (read === undefined) return undefined
    const { route } = table.match('GET', '', read.segments)
    return route && allow(route, 'GET', '', read) ? route.name : undefined
  }

  it('does not bypass the guards of another route, however the upstream interprets the path', () => {
    fc.assert(
      fc.property(target, path => {
        if (wayOf(path) !== 'open') return
        const sent = open.upstreamPath(
          parseRequestTarget(path) as NonNullable<ReturnType<typeof parseRequestTarget>>,
        )
        expect([path, readings(sent).filter(reading => isUnder(reading, '/private'))]).toEqual([path, []])
      }),
      often,
    )
  })

  it.each([
    ['/x;y', 'open'],
    ['/x/y%2fprivate', 'open'],
    ['/private', 'shut'],
    ['/private/x;y', undefined],
    ['/private%20;y', undefined],
    ['/%20private;y', undefined],
    ['/privat;e', 'open'],
    ['/pri;v/ate', 'open'],
    ['/private;y', undefined],
    ['/private%2fx', undefined],
    ['/%2570rivate', undefined],
    ['/private.', undefined],
    ['/private%253fx', undefined],
    ['/%2fprivate', undefined],
    ['/own;x/y', undefined],
    ['/own/;y', undefined],
    ['/ow/n;y', 'open'],
    ['/x%2fown', 'open'],
  ])('like %s is sent to the route %s (undefined if it is refused)', (path, route) => {
    expect(wayOf(path)).toBe(route)
  })

  it('is refused if it could also match a guarded route, or if its route does not allow the ambiguity', () => {
    const reading = routeWith({ name: 'reading', path: '/private', auth: 'required', methods: ['POST'] })
    const dots = routeWith({ name: 'dots', path: '/*', allow_in_path: ['trailing_dot'] })
    const table = createRouteTable([dots, reading])
    const allow = createAllowAmbiguous({ isOwn: () => false, routes: table, isSameService: () => true })
    expect([
      wayOf('/x.', table, allow),
      wayOf('/private.', table, allow),
      wayOf('/x;', table, allow),
    ]).toEqual(['dots', undefined, undefined])
  })

  it('is accepted if every other interpretation matches the same route or none, and refused if one matches a route with other methods', () => {
    const files = routeWith({
      name: 'files',
      path: '/f/:name',
      allow_in_path: ['encoded_slash', 'semicolon'],
    })
    const closed = routeWith({
      name: 'closed',
      path: '/g/*',
      auth: 'required',
      allow_in_path: ['encoded_slash', 'semicolon'],
    })
    const posted = routeWith({ name: 'posted', path: '/f/a/b', methods: ['POST'] })
    const table = createRouteTable([files, closed, posted])
    const allow = createAllowAmbiguous({ isOwn: () => false, routes: table, isSameService: () => true })
    expect(['/f/x%2fy', '/g/x;y', '/g/x%2fy', '/f/a%2fb'].map(path => wayOf(path, table, allow))).toEqual([
      'files',
      'closed',
      'closed',
      undefined,
    ])
  })

  it('is accepted if it could also match an unguarded route, or a route of another upstream', () => {
    const files = routeWith({ name: 'files', path: '/f/:name', allow_in_path: ['encoded_slash'] })
    const rest = routeWith({ name: 'rest', path: '/*', auth: 'required', upstream: 'other' })
    const free = routeWith({ name: 'free', path: '/f/a/b' })
    const table = createRouteTable([files, rest, free])
    const allow = createAllowAmbiguous({
      isOwn: () => false,
      routes: table,
      isSameService: (a, b) => a === b,
    })
    expect([wayOf('/f/x%2fy', table, allow), wayOf('/f/a%2fb', table, allow)]).toEqual(['files', 'files'])
    expect(wayOf('/g%2fx', table, allow)).toBeUndefined()
  })
})

describe('duplicate slashes', () => {
  const sent = (path: string, declared: Parameters<typeof routeWith>[0]) => {
    const read = parseRequestTarget(path)
    return read && routeWith({ allow_in_path: ['double_slash'], ...declared }).upstreamPath(read)
  }
  it.each([
    ['//a///b//', {}, '//a///b//'],
    ['/a/b/', {}, '/a/b/'],
    ['//a//b', { allow_in_path: [] }, '/a/b'],
    ['/a//b//c', { path: '/a/*', strip_prefix: '/a' }, '//b//c'],
    ['//a//b///c/', { path: '/a/b/*', strip_prefix: '/a/b' }, '///c/'],
    ['//a', { path: '/a/*', strip_prefix: '/a' }, '/'],
    ['//a//b//c', { path: '/a/:x/*', rewrite: '/n/:x/*' }, '/n/b//c'],
    ['/a/b', { path: '/a/:x/*', rewrite: '/n/:x/*' }, '/n/b'],
  ] as const)(
    'are handled so that the path %s, on a route with %j, is forwarded as %s',
    (path, declared, expected) => {
      expect(sent(path, declared as never)).toBe(expected)
    },
  )
})

it('long paths with many ambiguous characters are checked within 500 ms', () => {
  const hostile = [
    `/${'.'.repeat(8_000)}x`,
    `/${'%2f'.repeat(5_000)}.`,
    `/${';.'.repeat(7_000)}`,
    `/${'%25'.repeat(5_000)}41`,
    `/${'%2525'.repeat(3_000)}`,
    `/a%20${'.%20'.repeat(3_500)}x;`,
  ]
  const allow = createAllowAmbiguous({
    isOwn: () => false,
    routes: createRouteTable([routeWith({ allow_in_path: every })]),
    isSameService: () => true,
  })
  const started = performance.now()
  for (const path of hostile) {
    const read = parseRequestTarget(path)
    if (read !== undefined) allow(routeWith({ allow_in_path: every }), 'GET', '', read)
  }
  expect(performance.now() - started).toBeLessThan(500)
})
