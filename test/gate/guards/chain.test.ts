// Tests how a chain runs, counts and traces its guards. Also tests the guards that query no store.
import { describe, expect, it } from 'vitest'
import { createPlans } from '../../../src/config/plans.ts'
import type { RouteConfig } from '../../../src/config/sections/schema.ts'
import { admitUncounted } from '../../../src/gate/guards/admission.ts'
import type { Authenticate } from '../../../src/gate/guards/authenticate.ts'
import { compileEndpointGuards, compileGuards, type GuardChain } from '../../../src/gate/guards/chain.ts'
import { createRateLimit } from '../../../src/gate/guards/rate-limit.ts'
import { anonymous, type Identity } from '../../../src/identity/identity.ts'
import { createCounters } from '../../../src/observability/metrics/counters.ts'
import { ClientDisconnected, Refusal, serviceUnavailable } from '../../../src/refusals/refusal.ts'
import { type CreateRateLimiter, createRateLimiter } from '../../../src/storage/rate-limiter.ts'
import type { Endpoint } from '../../../src/upstream/targets/endpoint.ts'
import type { Plan } from '../../../src/users/user.ts'
import { builtInPlans } from '../../support/plans.ts'
import { routeWith } from '../a-route.ts'
import { bodyOf, fieldOf, guardedRequest, told, userIdentity } from './a-guarded-request.ts'

const free = userIdentity()

/**
 * Returns functions that compile the guards of a route or of an endpoint.
 * @param identify a stub of the authentication guard, which returns the identity or the refusal
 */
function guardsFor(identify: () => Identity | Refusal | Promise<Identity>) {
  const decisions = createCounters().guards
  const authenticate: Authenticate = () => identify
  const createLimiter: CreateRateLimiter = (name, limit) =>
    createRateLimiter(name, limit, { clock: { now: () => 0 } })
  const upstream = {
    state: 'available' as 'available' | 'down' | 'full',
    isAvailable: () => upstream.state !== 'down',
    endpointFor: () => (upstream.state === 'available' ? ({} as Endpoint) : undefined),
    connectionLimit: { limit: 32, key: 'upstreams.courses.connections_per_client' },
  }
  const limitRate = createRateLimit(createLimiter, builtInPlans)
  const dependencies = {
    authenticate,
    limitRate,
    countDailyUse: admitUncounted,
    countQuota: () => admitUncounted,
    decisions,
    plans: builtInPlans,
  }
  return {
    decisions,
    upstream,
    route(declared: Partial<RouteConfig>): GuardChain {
      const { guards } = compileGuards(routeWith(declared), upstream, dependencies)
      return guards as GuardChain
    },
    endpoint: (plans?: readonly Plan[]) => compileEndpointGuards({ keys: 'api_token', plans }, dependencies),
  }
}

describe('a chain of guards', () => {
  it('runs, counts and traces only the guards that the route configures', async () => {
    const { route, decisions } = guardsFor(() => free)
    const request = guardedRequest({ 'content-length': '1000000' })
    expect(told(await route({ auth: 'required' })(request))).toBe('access_token of 1')
    expect(request.traced).toEqual(['authenticate', 'target', undefined])
    const { authenticate, target, ...others } = decisions
    expect([authenticate.pass, target.pass]).toEqual([1, 1])
    expect(Object.values(others)).toEqual(Array(7).fill({ pass: 0, refuse: 0, error: 0 }))

    const open = guardedRequest()
    await route({ auth: 'none' })(open)
    expect(open.traced).toEqual(['target', undefined])
  })

  it('counts and traces all guards up to and including the first guard that refuses', async () => {
    const { route, decisions } = guardsFor(() => free)
    const limited = route({
      ...{ auth: 'required', plans: ['free'], verified: true, max_body: 10, free_daily: true },
      rate_limit: { limit: 1, windowMs: 60_000 },
    })
    const request = guardedRequest()
    expect(told(await limited(request))).toBe('403 email_unverified')
    expect(request.traced).toEqual(['authenticate', 'rate_limit', 'plan', 'verified', 'refuse'])
    expect(told(await limited(guardedRequest()))).toBe('429 rate_limited')
    expect(decisions).toMatchObject({
      authenticate: { pass: 2, refuse: 0, error: 0 },
      rate_limit: { pass: 1, refuse: 1, error: 0 },
      plan: { pass: 1, refuse: 0, error: 0 },
      verified: { pass: 0, refuse: 1, error: 0 },
      max_body: { pass: 0, refuse: 0, error: 0 },
    })
  })

  it.each([
    [new Refusal('plan_insufficient'), { pass: 0, refuse: 1, error: 0 }, 'refuse'],
    [new Refusal('key_check_failed'), { pass: 0, refuse: 0, error: 1 }, 'error'],
    [serviceUnavailable(new Error('down')), { pass: 0, refuse: 0, error: 1 }, 'error'],
    [new Error('a bug'), { pass: 0, refuse: 0, error: 1 }, 'error'],
    [new ClientDisconnected(), { pass: 0, refuse: 0, error: 0 }, 'client_gone'],
  ])(
    'returns the error of a guard, and counts it as a refusal, a failure or neither: %s',
    async (thrown, counts, failure) => {
      const ways = [
        () => {
          throw thrown
        },
        () => Promise.reject(thrown),
        ...(thrown instanceof Refusal ? [() => thrown] : []),
      ]
      for (const way of ways) {
        const { route, decisions } = guardsFor(way)
        const request = guardedRequest()
        expect(await route({ auth: 'required' })(request)).toEqual({ allowed: false, thrown })
        expect([decisions.authenticate, request.traced]).toEqual([counts, ['authenticate', failure]])
      }
    },
  )

  it('makes the same decisions if the request is not traced', async () => {
    for (const identity of [free, anonymous]) {
      const guards = guardsFor(() => identity).route({ auth: 'optional', plans: ['free'] })
      expect(told(await guards({ ...guardedRequest(), trace: undefined }))).toBe(
        identity === free ? 'access_token of 1' : '401 unauthenticated',
      )
    }
  })

  it('for a local endpoint, authenticates and checks the plan, and needs no target', async () => {
    const { endpoint, upstream, decisions } = guardsFor(() => free)
    upstream.state = 'down'
    expect(told(await endpoint()(guardedRequest()))).toBe('access_token of 1')
    const tooSmall = guardedRequest()
    expect(told(await endpoint(['pro'])(tooSmall))).toBe('403 plan_insufficient')
    expect(tooSmall.traced).toEqual(['authenticate', 'plan', 'refuse'])
    expect(told(await endpoint(['free'])(guardedRequest()))).toBe('access_token of 1')
    expect(decisions).toMatchObject({
      authenticate: { pass: 3, refuse: 0, error: 0 },
      plan: { pass: 1, refuse: 1, error: 0 },
    })
    const other = guardsFor(() => new Refusal('plan_insufficient'))
    expect(told(await other.endpoint()(guardedRequest()))).toBe('403 plan_insufficient')
  })
})

describe('a guard that queries no store', () => {
  const verified = userIdentity({ email_verified_at: new Date(0) })
  const paying = userIdentity({ plan: 'premium' })

  it.each<[string, Identity, Partial<RouteConfig>, string, Record<string, string>?]>([
    ['a plan that the route accepts', paying, { plans: ['premium', 'pro'] }, 'access_token of 1'],
    ['a plan that the route does not accept', free, { plans: ['premium', 'pro'] }, '403 plan_insufficient'],
    ['no user, if a plan is required', anonymous, { plans: ['free'] }, '401 unauthenticated'],
    ['a verified email', verified, { verified: true }, 'access_token of 1'],
    ['an unverified email', free, { verified: true }, '403 email_unverified'],
    ['no user, if a verified email is required', anonymous, { verified: true }, '401 unauthenticated'],
    ['a body as large as the limit', free, { max_body: 10 }, 'access_token of 1', { 'content-length': '10' }],
    ['a larger body', free, { max_body: 10 }, '413 body_too_large', { 'content-length': '11' }],
    ['a body without a length', free, { max_body: 10 }, 'access_token of 1'],
  ])('allows or refuses a request with %s', async (_, identity, declared, expected, headers = {}) => {
    const guards = guardsFor(() => identity).route({ auth: 'optional', ...declared })
    const decision = await guards(guardedRequest(headers))
    expect(told(decision)).toBe(expected)
    const challenge = expected.startsWith('401') ? 'Bearer' : undefined
    expect(fieldOf(decision, 'www-authenticate')).toBe(challenge)
  })

  it('refuses an insufficient plan, and its response contains the sufficient plans and the upgrade URL', async () => {
    const guards = guardsFor(() => free).route({ auth: 'required', plans: ['premium', 'pro'] })
    expect(bodyOf(await guards(guardedRequest()))).toEqual({
      error: 'Plan insuffisant',
      required: ['premium', 'pro'],
      current_plan: 'free',
      upgrade_url: '/api/v1/subscription/upgrade',
    })
  })

  it.each([
    ['available', 'access_token of 1'],
    ['down', '503 upstream_unavailable'],
    ['full', '429 rate_limited'],
  ] as const)(
    'allows a request only if a target of the upstream accepts the client (the upstream is %s)',
    async (state, expected) => {
      const { route, upstream } = guardsFor(() => free)
      upstream.state = state
      expect(told(await route({ auth: 'required' })(guardedRequest()))).toBe(expected)
    },
  )
})

describe('a route’s rate limit', () => {
  const limited = { name: 'slow', rate_limit: { limit: 1, windowMs: 60_000 } }

  it('counts the requests of users by user ID, and the requests of anonymous clients by address', async () => {
    let identity: Identity = anonymous
    const guards = guardsFor(() => identity).route({ auth: 'optional', ...limited })
    const ask = async (caller: Identity, peer: string) => {
      identity = caller
      return told(await guards(guardedRequest({}, peer)))
    }
    const second = userIdentity({ id: 2 })
    expect(await ask(free, '192.0.2.1')).toBe('access_token of 1')
    expect(await ask(free, '192.0.2.2')).toBe('429 rate_limited')
    expect(await ask(second, '192.0.2.1')).toBe('access_token of 2')
    expect(await ask(anonymous, '192.0.2.1')).toBe('anonymous')
    expect(await ask(anonymous, '192.0.2.1')).toBe('429 rate_limited')
    expect(await ask(anonymous, '192.0.2.2')).toBe('anonymous')
    // All addresses of a /64 network count as one client.
    expect(await ask(anonymous, '2001:db8::1')).toBe('anonymous')
    expect(await ask(anonymous, '2001:db8::2')).toBe('429 rate_limited')
  })

  it('never has the same name as a limit of the gateway itself', () => {
    const names: string[] = []
    const limitRate = createRateLimit((name, limit) => {
      names.push(name)
      return createRateLimiter(name, limit, { clock: { now: () => 0 } })
    }, builtInPlans)
    limitRate(routeWith({ ...limited, name: 'bad_keys' }))
    limitRate(routeWith({ name: 'without' }))
    expect(names).toEqual(['route:bad_keys'])
  })

  it('includes the limit of the user’s plan, which all routes share; users without any limit never wait', async () => {
    const plan = { quotas: {}, api_keys: 0, webhook: false }
    const rate_limit = { limit: 1, windowMs: 60_000 }
    const plans = createPlans([
      { ...plan, name: 'free' },
      { ...plan, name: 'pro', rate_limit },
    ])
    const names: string[] = []
    const limitRate = createRateLimit((name, limit) => {
      names.push(name)
      return createRateLimiter(name, limit, { clock: { now: () => 0 } })
    }, plans)
    const [first, second] = [
      limitRate(routeWith({ name: 'first' })),
      limitRate(routeWith({ name: 'second' })),
    ]
    expect(names).toEqual(['plan:pro'])
    const [unlimited, pro] = [userIdentity({ plan: 'free' }), userIdentity({ plan: 'pro' })]
    expect(first(guardedRequest(), unlimited)).toBe(unlimited)
    expect(first(guardedRequest(), pro)).toBeInstanceOf(Promise)
    expect(await second(guardedRequest(), pro)).toMatchObject({ code: 'rate_limited' })
  })

  it('adds the remaining requests to allowed responses, and Retry-After to refusals', async () => {
    const guards = guardsFor(() => anonymous).route(limited)
    const [within, over] = [guardedRequest(), guardedRequest()]
    await guards(within)
    expect(within.added).toEqual([{ 'ratelimit-policy': '"slow";q=1;w=60', ratelimit: '"slow";r=0;t=60' }])
    const refused = await guards(over)
    expect([fieldOf(refused, 'retry-after'), over.added]).toEqual(['60', []])
    expect(refused).toMatchObject({ thrown: { reason: 'routes.slow.rate_limit' } })
  })
})
