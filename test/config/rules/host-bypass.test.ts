// Tests that `check` reports exactly the real bypasses. A bypass is a route with weaker guards that a client reaches if
// it sends another host. To find the real bypasses, the test tries every request with every host.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../../../src/config/load.ts'
import type { Route } from '../../../src/gate/routing/route.ts'
import { createRouteTable } from '../../../src/gate/routing/route-table.ts'
import { routeWith } from '../../gate/a-route.ts'
import { runs } from '../../support/property-runs.ts'

/** The upstreams `one` and `same` are the same service, because they have a common target. */
const upstreams = {
  one: { targets: ['http://a', 'http://b'] },
  same: { targets: ['http://b'] },
  other: { targets: ['http://c'] },
}

/** The plans and the guards of routes from which the files of one test are generated. */
interface Variant {
  /** The sections of the file except the upstreams and routes. */
  readonly sections: object
  readonly guards: fc.Arbitrary<object>
  /** For each plan of a user, the allowance of each quota. The built-in plans have none, and are not in the file. */
  readonly allowances: Readonly<Record<string, Readonly<Record<string, number>>>>
}

const builtInPlans: Variant = {
  sections: {},
  guards: fc.constantFrom<object>(
    {},
    {},
    { auth: 'none' },
    { auth: 'none' },
    { auth: 'optional' },
    { auth: 'optional', plans: ['premium', 'pro'] },
    { plans: ['pro'] },
    { plans: ['free', 'premium', 'pro'] },
    { free_daily: true },
    { free_daily: true, plans: ['free', 'pro'] },
    { verified: true },
    { verified: true, auth: 'optional' },
    { verified: true, free_daily: true },
  ),
  allowances: { free: {}, premium: {}, pro: {} },
}

const plansWithQuotas: Variant = {
  sections: {
    plans: [
      { name: 'low', quotas: { one: '9/day', two: '9/day', three: 0 } },
      { name: 'high', quotas: { one: 'unlimited', two: '9/day', three: 'unlimited' } },
    ],
  },
  guards: fc.constantFrom<object>(
    {},
    { auth: 'none' },
    { plans: ['low', 'high'] },
    { plans: ['high'] },
    { quota: { name: 'one', cost: 1 } },
    { quota: { name: 'one', cost: 2 } },
    { quota: { name: 'one', cost: 1 }, plans: ['high'] },
    { quota: { name: 'two', cost: 2 } },
    { quota: { name: 'two', cost: 1 }, verified: true },
    { quota: { name: 'three', cost: 1 } },
  ),
  allowances: {
    low: { one: 9, two: 9, three: 0 },
    high: { one: Number.POSITIVE_INFINITY, two: 9, three: Number.POSITIVE_INFINITY },
  },
}

const plansAndScopes: Variant = {
  sections: {
    plans: [
      { name: 'low', quotas: { one: 0 } },
      { name: 'high', quotas: { one: '9/day' } },
    ],
  },
  guards: fc.constantFrom<object>(
    {},
    { auth: 'none' },
    { auth: 'optional' },
    { auth: 'optional', scope: 'x' },
    { auth: 'optional', bearer_only: true },
    { scope: 'x' },
    { scope: 'y' },
    { bearer_only: true },
    { bearer_only: false, plans: ['high'] },
    { plans: ['high'], scope: 'x' },
    { plans: ['low'], bearer_only: true },
    { plans: ['low'], quota: { name: 'one', cost: 1 }, scope: 'y' },
    { quota: { name: 'one', cost: 1 }, scope: 'x' },
    { verified: true, scope: 'y' },
  ),
  allowances: { low: { one: 0 }, high: { one: 9 } },
}

/** The lists of scopes of the API keys that are tried for each user. Null means that the key has all scopes. */
const scopesOfKeys = [null, [], ['x'], ['y'], ['x', 'y'], ['z']]

/** The lists of hosts of generated routes. Some lists are repeated, so that many generated files have a bypass. */
const hostLists = [
  ...[[], [], [], [], [], []],
  ...[['h'], ['a.t'], ['b.a.t'], ['h', 'a.t']],
  ...[['*.t'], ['*.t'], ['*.a.t'], ['*.a.t', 'h'], ['*.a.t', '*.t'], ['a.t', '*.t']],
]

/** The hosts of requests: each host above; one more host below each wildcard; one host that no list matches. */
const requestHosts = ['h', 'a.t', 'b.a.t', 'x.t', 'x.a.t', 'other']

const written = (guards: Variant['guards']) =>
  fc
    .record({
      segments: fc.array(fc.constantFrom('a', 'b', ':p'), { maxLength: 3 }),
      isWild: fc.boolean(),
      hosts: fc.constantFrom<string[]>(...hostLists),
      methods: fc.constantFrom<object>(
        {},
        {},
        { methods: ['GET'] },
        { methods: ['POST'] },
        { methods: ['HEAD', 'POST'] },
      ),
      upstream: fc.constantFrom('one', 'one', 'same', 'other'),
      guards,
    })
    .map(({ segments, isWild, hosts, methods, upstream, guards }) => {
      const named = segments.map((segment, index) => (segment === ':p' ? `:p${index}` : segment))
      return {
        path: `/${[...named, ...(isWild ? ['*'] : [])].join('/')}`,
        hosts,
        upstream,
        ...methods,
        ...guards,
      }
    })

/**
 * Returns the bypasses that `check` reports, each as `guarded <- bypass` with the indexes of the two routes. Returns
 * undefined if `check` reports another problem.
 */
function found(routes: readonly object[], sections: object): string[] | undefined {
  const text = stringify({ ...sections, upstreams, routes })
  const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile: () => text })
  if (!('problems' in loaded)) return []
  const pairs = loaded.problems.map(({ path, message }) => {
    const [, guarded] = /^routes\[(\d+)\]\.path$/.exec(path) ?? []
    const [, bypass] = /routes\[(\d+)\]/.exec(message) ?? []
    // A message about two conflicting routes also names both routes, so the start of the message is checked.
    return message.startsWith('requests for this path with another host reach ')
      ? `${guarded} <- ${bypass}`
      : undefined
  })
  return pairs.every(pair => pair !== undefined) ? pairs : undefined
}

const words = ['a', 'b', 'c']
const paths: string[][] = [[]]
for (const path of paths) if (path.length < 4) paths.push(...words.map(word => [...path, word]))

/**
 * Returns the real bypasses. A bypass is real if the same request reaches the guarded route with one `Host`, and the
 * bypass with another `Host`. The bypass must have no hosts, or receive the request through a wildcard that is wider
 * than the host or wildcard of the guarded route.
 */
function reached(routes: readonly Route[], allowances: Variant['allowances']): Set<string> {
  const { match } = createRouteTable(routes)
  const pairs = new Map<string, { guarded: Route; bypass: Route }>()
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT']) {
      const answers = requestHosts.flatMap(host => {
        const answer = match(method, host, path)
        return answer.kind === 'route' ? [{ route: answer.route, through: hostOf(answer.route, host) }] : []
      })
      for (const { route: guarded, through } of answers) {
        for (const { route: bypass, through: wider } of answers) {
          if (isWider(wider, through)) pairs.set(`${guarded.name} <- ${bypass.name}`, { guarded, bypass })
        }
      }
    }
  }
  const open = [...pairs].filter(
    ([, { guarded, bypass }]) => isSameService(guarded, bypass) && isLaxer(bypass, guarded, allowances),
  )
  return new Set(open.map(([pair]) => pair))
}

/** Returns the host, or the longest wildcard, of the route that matches `host`. Returns undefined if none matches. */
function hostOf({ hosts }: Route, host: string): string | undefined {
  if (hosts.includes(host)) return host
  return hosts.filter(one => isBelow(host, one)).sort((a, b) => b.length - a.length)[0]
}

const isBelow = (host: string, wildcard: string) =>
  wildcard.startsWith('*.') && host.endsWith(wildcard.slice(1))

function isWider(one: string | undefined, other: string | undefined): boolean {
  if (one === undefined || other === undefined) return one === undefined && other !== undefined
  return one !== other && isBelow(other, one)
}

function isSameService(one: Route, other: Route): boolean {
  const targets = (name: string | undefined) => upstreams[name as keyof typeof upstreams].targets
  return targets(one.upstreamName).some(target => targets(other.upstreamName).includes(target))
}

/**
 * Returns whether the guards of the bypass are weaker for at least one caller. For example, the bypass admits a caller
 * that the guarded route refuses, or does not count a use that the guarded route counts.
 */
function isLaxer(bypass: Route, guarded: Route, allowances: Variant['allowances']): boolean {
  const plans = Object.keys(allowances)
  const users = [...plans, ...plans.map(plan => `unverified ${plan}`)]
  const requests: [caller: string, key?: string[] | null][] = [
    ...['anonymous', 'bad token', ...users].map((caller): [string] => [caller]),
    ...users.flatMap(user => scopesOfKeys.map((scopes): [string, string[] | null] => [user, scopes])),
  ]
  return requests.some(([caller, key]) => {
    const [ours, theirs] = [bypass, guarded].map(route => countsOf(route, caller, allowances, key))
    if (ours === undefined || theirs === undefined) return ours !== undefined
    return Object.entries(theirs).some(([what, count]) => (ours[what] ?? 0) < count)
  })
}

/**
 * Returns how many uses of each limit a request counts. Returns undefined if the request is refused.
 * @param key the scopes of the API key; undefined for an access token
 */
function countsOf(
  { auth, scope, bearer_only, plans, verified, free_daily, quota }: Route,
  caller: string,
  allowances: Variant['allowances'],
  key: readonly string[] | null | undefined,
): Record<string, number> | undefined {
  if (auth === 'none') return {}
  if (caller === 'bad token') return undefined
  if (key !== undefined && bearer_only) return undefined
  if (key && !key.some(each => each === scope)) return undefined
  if (caller === 'anonymous') return auth === 'required' || plans || verified || quota ? undefined : {}
  const plan = caller.replace('unverified ', '')
  if (verified && plan !== caller) return undefined
  if (plans && !plans.some(each => each === plan)) return undefined
  if (quota === undefined) return free_daily && plan === 'free' ? { daily: 1 } : {}
  const allowance = allowances[plan]?.[quota.name] ?? 0
  if (allowance === 0) return undefined
  return allowance === Number.POSITIVE_INFINITY ? {} : { [quota.name]: quota.cost }
}

describe('a bypass', () => {
  it.each([
    ['the built-in plans', builtInPlans],
    ['plans with quotas', plansWithQuotas],
    ['scopes', plansAndScopes],
  ])(
    'is reported with %s exactly if a request with another host reaches the same service through weaker guards',
    (_, { sections, guards, allowances }) => {
      let tried = 0
      const count = runs(500)
      let open = 0
      fc.assert(
        fc.property(fc.array(written(guards), { minLength: 2, maxLength: 7 }), routes => {
          const said = found(routes, sections)
          if (said === undefined) return
          tried += 1
          const real = reached(
            routes.map((route, index) => routeWith({ auth: 'required', ...route, name: `${index}` })),
            allowances,
          )
          if (real.size > 0) open += 1
          expect(new Set(said)).toEqual(real)
        }),
        { numRuns: count },
      )
      // The test proves something only if many generated files have a bypass, and many have none.
      expect(open).toBeGreaterThan(count / 10)
      expect(tried - open).toBeGreaterThan(count / 10)
    },
  )
})

describe('the weaker route', () => {
  it.each<[string, 'refused' | 'allowed', weaker: string[], guarded: string[]]>([
    ['without hosts', 'refused', [], ['a.example.com']],
    ['without hosts', 'refused', [], ['*.example.com']],
    ['with a wider wildcard', 'refused', ['*.example.com'], ['a.example.com']],
    ['with a wider wildcard', 'refused', ['*.example.com'], ['a.b.example.com']],
    ['with a wider wildcard', 'refused', ['*.example.com'], ['*.b.example.com']],
    ['with a wider wildcard', 'refused', ['*.com'], ['*.b.example.com']],
    ['with a wider wildcard in other letters', 'refused', ['*.EXAMPLE.com.:80'], ['A.example.COM']],
    [
      'with a wider wildcard among others',
      'refused',
      ['z.test', '*.test', '*.example.com'],
      ['a.example.com'],
    ],
    ['with a wildcard wider than one host', 'refused', ['*.example.com'], ['a.test', '*.b.example.com']],
    ['with an exact host', 'allowed', ['a.example.com'], ['*.example.com']],
    ['with an exact host', 'allowed', ['a.example.com'], ['b.example.com']],
    ['with the parent of the wildcard', 'allowed', ['example.com'], ['*.example.com']],
    ['with a narrower wildcard', 'allowed', ['*.b.example.com'], ['*.example.com']],
    ['with a wildcard of other hosts', 'allowed', ['*.example.com'], ['example.com']],
    ['with a wildcard of other hosts', 'allowed', ['*.example.com'], ['*.test']],
    ['with a wildcard of other hosts', 'allowed', ['*.b.example.com'], ['b.example.com', '*.c.example.com']],
    ['with a wildcard of other hosts', 'allowed', ['*.ample.com'], ['a.example.com', '*.example.com']],
    [
      'with a narrower wildcard and an exact host',
      'allowed',
      ['*.b.example.com', 'z.test'],
      ['*.example.com'],
    ],
  ])('%s is %s: hosts %j next to guarded hosts %j', (_, verdict, weaker, guarded) => {
    const ours = { path: '/x', hosts: guarded, upstream: 'one', plans: ['pro'] }
    const theirs = { path: '/*', hosts: weaker, upstream: 'one', auth: 'none' }
    const bypasses = verdict === 'refused' ? ['0 <- 1'] : []
    expect(found([ours, theirs], {})).toEqual(bypasses)
    expect(found([ours, { ...theirs, path: '/x' }], {})).toEqual(bypasses)
    expect(found([ours, { ...theirs, path: '/:id' }], {})).toEqual(bypasses)
    // A more specific path takes precedence over hosts. If both routes match a host, the weaker route receives all
    // requests for `/x` and this host. So no guards are bypassed.
    expect(
      found(
        [
          { ...ours, path: '/*' },
          { ...theirs, path: '/x' },
        ],
        {},
      ),
    ).toEqual([])
    expect(found([ours, { ...theirs, auth: 'required', plans: ['pro'] }], {})).toEqual([])
    expect(found([ours, { ...theirs, upstream: 'other' }], {})).toEqual([])
    expect(
      found(
        [
          { ...ours, methods: ['POST'] },
          { ...theirs, methods: ['GET'] },
        ],
        {},
      ),
    ).toEqual([])
  })

  it('with a wildcard is allowed only if guarded routes receive the requests to all hosts of this wildcard', () => {
    const guarded = { path: '/x', upstream: 'one', plans: ['pro'] }
    const weaker = { path: '/*', hosts: ['*.example.com'], upstream: 'one', auth: 'none' }
    const withThird = (hosts: string[]) =>
      found([{ ...guarded, hosts: ['a.example.com'] }, weaker, { ...guarded, hosts }], {})
    expect(withThird(['*.example.com'])).toEqual([])
    expect(withThird(['*.com'])).toEqual([])
    expect(withThird([])).toEqual([])
    expect(withThird(['*.b.example.com'])).toEqual(['0 <- 1', '2 <- 1'])
    expect(withThird(['b.example.com'])).toEqual(['0 <- 1', '2 <- 1'])
  })

  it('with several hosts is checked like several routes with one host each', () => {
    const guarded = { upstream: 'one', plans: ['pro'] }
    const open = { upstream: 'one', auth: 'none' }
    const pair = [
      { ...guarded, path: '/x/:q', hosts: ['a.example.com', 'z.test'] },
      { ...open, path: '/:p/y', hosts: ['*.example.com'] },
    ]
    expect(found(pair, {})).toEqual(['0 <- 1'])
    // For `a.example.com`, the third route receives `/x/y`, the only common path. For `z.test`, there is no bypass,
    // because `*.example.com` is not wider.
    expect(found([...pair, { ...open, path: '/x/y', hosts: ['a.example.com'] }], {})).toEqual([])
    // The third, guarded route receives the requests for `*.example.com`. The host `other` is not wider than
    // `a.example.com`.
    for (const other of ['*.ample.com', 'example.com', '*.test']) {
      const routes = [
        { ...guarded, path: '/x', hosts: ['a.example.com'] },
        { ...open, path: '/*', hosts: ['*.example.com', other] },
        { ...guarded, path: '/x', hosts: ['*.example.com'] },
      ]
      expect([other, found(routes, {})]).toEqual([other, []])
    }
  })
})
