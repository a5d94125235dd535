// Tests that `check` finds a bypass if, and only if, the routing has one. The test tries every request with every host.
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

const guards = fc.constantFrom<object>(
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
)

const written = fc
  .record({
    segments: fc.array(fc.constantFrom('a', 'b', ':p'), { maxLength: 3 }),
    isWild: fc.boolean(),
    hosts: fc.constantFrom<string[]>([], [], [], ['h1'], ['h2'], ['h1', 'h2']),
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
function found(routes: readonly { hosts: string[] }[]): string[] | undefined {
  const text = stringify({ upstreams, routes })
  const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile: () => text })
  if (!('problems' in loaded)) return []
  const hostsOf = (index: string | undefined) => routes[Number(index)]?.hosts.length ?? -1
  const pairs = loaded.problems.map(({ path, message }) => {
    const [, guarded] = /^routes\[(\d+)\]\.path$/.exec(path) ?? []
    const [, bypass] = /routes\[(\d+)\]/.exec(message) ?? []
    // A message about two conflicting routes has the same form. But conflicting routes either both have hosts, or both
    // have no hosts. For a bypass, only the guarded route has hosts.
    const isBypass = hostsOf(guarded) > 0 && hostsOf(bypass) === 0
    return isBypass ? `${guarded} <- ${bypass}` : undefined
  })
  return pairs.every(pair => pair !== undefined) ? pairs : undefined
}

const words = ['a', 'b', 'c']
const paths: string[][] = [[]]
for (const path of paths) if (path.length < 4) paths.push(...words.map(word => [...path, word]))

/**
 * Returns the real bypasses. A bypass is real if the same request reaches the guarded route with one `Host`, and the
 * bypass with another `Host`.
 */
function reached(routes: readonly Route[]): Set<string> {
  const { match } = createRouteTable(routes)
  const pairs = new Set<string>()
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT']) {
      const answers = ['h1', 'h2', 'h3'].map(host => match(method, host, path))
      for (const [index, own] of answers.entries()) {
        if (own.kind !== 'route' || own.route.hosts.length === 0) continue
        for (const bypass of answers.filter((_, other) => other !== index)) {
          if (bypass.kind !== 'route' || bypass.route.hosts.length > 0) continue
          if (isSameService(own.route, bypass.route) && isLaxer(bypass.route, own.route)) {
            pairs.add(`${own.route.name} <- ${bypass.route.name}`)
          }
        }
      }
    }
  }
  return pairs
}

function isSameService(one: Route, other: Route): boolean {
  const targets = (name: string) => upstreams[name as keyof typeof upstreams].targets
  return targets(one.upstreamName).some(target => targets(other.upstreamName).includes(target))
}

/**
 * Returns whether there is a caller for whom the bypass is laxer. For example, the bypass admits a caller that the
 * guarded route refuses, or does not count a use that the guarded route counts.
 */
function isLaxer(bypass: Route, guarded: Route): boolean {
  const outcome = (route: Route, caller: string): 'refused' | 'counted' | 'let in' => {
    const { auth, plans, verified, free_daily } = route
    const plan = caller.replace('unverified ', '')
    if (auth === 'none') return 'let in'
    if (caller === 'bad token') return 'refused'
    if (caller === 'anonymous' && (auth === 'required' || plans || verified)) return 'refused'
    if (verified && plan !== caller) return 'refused'
    if (caller !== 'anonymous' && plans && !plans.some(each => each === plan)) return 'refused'
    return free_daily && plan === 'free' ? 'counted' : 'let in'
  }
  const order = ['refused', 'counted', 'let in']
  const plans = ['free', 'premium', 'pro']
  return ['anonymous', 'bad token', ...plans, ...plans.map(plan => `unverified ${plan}`)].some(
    caller => order.indexOf(outcome(bypass, caller)) > order.indexOf(outcome(guarded, caller)),
  )
}

describe('a bypass', () => {
  it('is reported if a request with another host reaches the same service through weaker guards, and only then', () => {
    let tried = 0
    const count = runs(500)
    let open = 0
    fc.assert(
      fc.property(fc.array(written, { minLength: 2, maxLength: 7 }), routes => {
        const said = found(routes)
        if (said === undefined) return
        tried += 1
        const real = reached(
          routes.map((route, index) => routeWith({ auth: 'required', ...route, name: `${index}` })),
        )
        if (real.size > 0) open += 1
        expect(new Set(said)).toEqual(real)
      }),
      { numRuns: count },
    )
    // The test proves something only if many generated files have a bypass, and many have none.
    expect(open).toBeGreaterThan(count / 10)
    expect(tried - open).toBeGreaterThan(count / 10)
  })
})
