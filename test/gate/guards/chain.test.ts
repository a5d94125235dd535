// The order of the guards, what each refuses with, and that one that refuses leaves the later ones undone (CONTRACT §4).
import { describe, expect, it } from 'vitest'
import { ClientDisconnected, Refusal, serviceUnavailable } from '../../../src/refusals/refusal.ts'
import { bodyOf, fieldOf, guardStage, told } from './a-chain.ts'

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const none = { pass: 0, refuse: 0, error: 0 }

describe('a route’s guards', () => {
  it('each refuse before the next one, in the order of the contract', async () => {
    const stage = guardStage({ dailyLimit: 1 })
    stage.addUser(1, 'free')
    const token = await stage.tokenOf(1)
    stage.target.isAvailable = false
    const everything = {
      auth: 'required' as const,
      rate_limit: { limit: 1, windowMs: 60_000 },
      plans: ['pro' as const],
      verified: true,
      max_body: 10,
      free_daily: true,
    }
    const guards = stage.route(everything)
    const ask = (headers: Record<string, string> = {}) =>
      guards(stage.requestOf({ headers: { 'content-length': '11', ...headers } }))
    expect(told(await ask())).toBe('401 token_invalid')
    const within = await ask(bearer(token))
    expect(told(within)).toBe('403 plan_insufficient')
    expect(told(await ask(bearer(token)))).toBe('429 rate_limited')
    stage.clock.at += 60_000

    const { plans: _, ...anyPlan } = everything
    const unlimited = stage.route({ ...anyPlan, rate_limit: null })
    const asked = (length = '11') =>
      unlimited(stage.requestOf({ headers: { 'content-length': length, ...bearer(token) } }))
    expect(told(await asked())).toBe('403 email_unverified')
    stage.addUser(1, 'free', { email_verified_at: new Date(0) })
    stage.feed.tell('user 1')
    expect(told(await asked())).toBe('413 body_too_large')
    expect(told(await asked('10'))).toBe('503 upstream_unavailable')
    expect(stage.seen.stored).toBe(0)
    stage.target.isAvailable = true
    stage.target.admitsClient = false
    expect(told(await asked('10'))).toBe('429 rate_limited')
    expect(stage.seen.stored).toBe(0)
    stage.target.admitsClient = true
    expect(told(await asked('10'))).toBe('access_token of 1')
    expect(told(await asked('10'))).toBe('429 daily_limit_reached')
    expect(stage.seen.stored).toBe(1)
    expect(stage.guards).toMatchObject({
      rate_limit: { pass: 1, refuse: 1, error: 0 },
      plan: { pass: 0, refuse: 1, error: 0 },
      verified: { pass: 5, refuse: 1, error: 0 },
      max_body: { pass: 4, refuse: 1, error: 0 },
      target: { pass: 2, refuse: 2, error: 0 },
      free_daily: { pass: 1, refuse: 1, error: 0 },
    })
  })

  it('that the route does not ask for decide nothing and count nothing', async () => {
    const stage = guardStage()
    stage.addUser(1, 'free')
    const request = stage.requestOf({
      headers: { ...bearer(await stage.tokenOf(1)), 'content-length': '1000000' },
    })
    expect(told(await stage.route({ auth: 'required' })(request))).toBe('access_token of 1')
    expect(request.told).toEqual(['authenticate', 'target', 'undefined'])
    const { authenticate, target, ...others } = stage.guards
    expect([authenticate.pass, target.pass]).toEqual([1, 1])
    expect(Object.values(others)).toEqual(Array(5).fill(none))
  })

  it('decide the same where nothing is traced', async () => {
    const stage = guardStage()
    const guards = stage.route({ auth: 'optional', plans: ['free'] })
    stage.addUser(1, 'free')
    const passes = stage.requestOf({ headers: bearer(await stage.tokenOf(1)) })
    expect(told(await guards({ ...passes, trace: undefined }))).toBe('access_token of 1')
    expect(told(await guards({ ...stage.requestOf({}), trace: undefined }))).toBe('401 unauthenticated')
  })

  it('count a store that is away as an error, whoever says so', async () => {
    const stage = guardStage()
    stage.failing.users = serviceUnavailable(new Error('down'))
    const request = stage.requestOf({ headers: bearer(await stage.tokenOf(1)) })
    expect(told(await stage.route({ auth: 'required' })(request))).toBe('503 service_unavailable')
    expect(stage.guards.authenticate).toEqual({ pass: 0, refuse: 0, error: 1 })
  })

  it('tell the trace which of them refused', async () => {
    const stage = guardStage()
    const request = stage.requestOf({})
    await stage.route({ auth: 'optional', plans: ['pro'] })(request)
    expect(request.told).toEqual(['authenticate', 'plan', 'refuse'])
  })
})

describe('the plan', () => {
  it('that is too small is named with those that would do, and where to get them', async () => {
    const stage = guardStage()
    stage.addUser(1, 'free')
    const guards = stage.route({ auth: 'required', plans: ['premium', 'pro'] })
    const decision = await guards(stage.requestOf({ headers: bearer(await stage.tokenOf(1)) }))
    expect(bodyOf(decision)).toEqual({
      error: 'Plan insuffisant',
      required: ['premium', 'pro'],
      current_plan: 'free',
      upgrade_url: '/api/v1/subscription/upgrade',
    })
    stage.addUser(2, 'premium')
    const passes = await guards(stage.requestOf({ headers: bearer(await stage.tokenOf(2)) }))
    expect(told(passes)).toBe('access_token of 2')
  })

  it.each([{ plans: ['pro' as const] }, { verified: true }])(
    'of nobody is asked to say who they are: %j',
    async declared => {
      const stage = guardStage()
      const decision = await stage.route({ auth: 'optional', ...declared })(stage.requestOf({}))
      expect([told(decision), fieldOf(decision, 'www-authenticate')]).toEqual([
        '401 unauthenticated',
        'Bearer',
      ])
    },
  )
})

describe('a route’s rate limit', () => {
  const limited = { name: 'slow', rate_limit: { limit: 1, windowMs: 60_000 } }

  it('counts users by themselves, wherever they come from, and others by address', async () => {
    const stage = guardStage()
    for (const id of [1, 2]) stage.addUser(id, 'pro')
    const [first, second] = await Promise.all([stage.tokenOf(1), stage.tokenOf(2)])
    const guards = stage.route({ auth: 'optional', ...limited })
    const ask = async (headers: Record<string, string>, peer: string) =>
      told(await guards(stage.requestOf({ headers, peer })))
    expect(await ask(bearer(first), '192.0.2.1')).toBe('access_token of 1')
    expect(await ask(bearer(first), '192.0.2.2')).toBe('429 rate_limited')
    expect(await ask(bearer(second), '192.0.2.1')).toBe('access_token of 2')
    expect(await ask({}, '192.0.2.1')).toBe('anonymous')
    expect(await ask({}, '192.0.2.1')).toBe('429 rate_limited')
    expect(await ask({}, '192.0.2.2')).toBe('anonymous')
    // One client has a whole /64.
    expect(await ask({}, '2001:db8::1')).toBe('anonymous')
    expect(await ask({}, '2001:db8::2')).toBe('429 rate_limited')
  })

  it('is a route’s own: other routes, and limits of the gateway of the same name, count by themselves', async () => {
    const stage = guardStage({ badKeys: 1 })
    const one = stage.route({ ...limited, name: 'one' })
    const other = stage.route({ ...limited, name: 'bad_keys' })
    const ask = async (guards: typeof one) => told(await guards(stage.requestOf({})))
    expect([await ask(one), await ask(other)]).toEqual(['anonymous', 'anonymous'])
    const key = stage.requestOf({ headers: { 'x-api-key': 'peage_bad' } })
    expect(told(await stage.route({ auth: 'required' })(key))).toBe('401 token_invalid')
    expect([await ask(one), await ask(other)]).toEqual(['429 rate_limited', '429 rate_limited'])
  })

  it('tells those within it what is left, and those over it when to come back', async () => {
    const stage = guardStage()
    const guards = stage.route(limited)
    const request = stage.requestOf({})
    await guards(request)
    expect(request.added).toEqual([{ 'ratelimit-policy': '"slow";q=1;w=60', ratelimit: '"slow";r=0;t=60' }])
    const refused = stage.requestOf({})
    const decision = await guards(refused)
    expect([fieldOf(decision, 'retry-after'), refused.added]).toEqual(['60', []])
  })
})

describe('the daily use', () => {
  const counted = { auth: 'optional', free_daily: true } as const

  it('is counted for plan free alone', async () => {
    const stage = guardStage()
    stage.addUser(1, 'pro')
    const guards = stage.route(counted)
    for (let i = 0; i < 2; i++) {
      const asked = await guards(stage.requestOf({ headers: bearer(await stage.tokenOf(1)) }))
      expect(told(asked)).toBe('access_token of 1')
      expect(told(await guards(stage.requestOf({})))).toBe('anonymous')
    }
    expect(stage.seen.stored).toBe(0)
  })

  it('is counted for a key as for a token', async () => {
    const stage = guardStage({ dailyLimit: 1 })
    stage.addUser(1, 'free')
    stage.addKey('peage_good', 10, 1)
    const ask = () => stage.route(counted)(stage.requestOf({ headers: { 'x-api-key': 'peage_good' } }))
    expect([told(await ask()), told(await ask())]).toEqual(['api_token of 1', '429 daily_limit_reached'])
  })

  it('that is spent is refused until midnight from memory, at once, and names the limit', async () => {
    const stage = guardStage({ dailyLimit: 1 })
    stage.addUser(1, 'free')
    const token = await stage.tokenOf(1)
    const guards = stage.route(counted)
    const ask = () => guards(stage.requestOf({ headers: bearer(token) }))
    expect(told(await ask())).toBe('access_token of 1')
    const refused = await ask()
    expect([told(refused), fieldOf(refused, 'retry-after')]).toEqual(['429 daily_limit_reached', '43200'])
    expect(stage.connections.cancelled).toBe(1)
    expect(bodyOf(refused)).toMatchObject({ error: 'Limite quotidienne atteinte (plan free: 1 course/jour)' })
    const reads = stage.seen.asked.length
    const again = ask()
    expect(again).not.toBeInstanceOf(Promise)
    expect([told(await again), stage.seen.asked.length]).toEqual(['429 daily_limit_reached', reads])
  })

  it('asked for before midnight and refused after it may be asked for again at once', async () => {
    const stage = guardStage({ dailyLimit: 1 })
    stage.addUser(1, 'free')
    // From noon on.
    stage.clock.at += 11 * 3_600_000 + 59 * 60_000 + 50_000
    const token = await stage.tokenOf(1)
    const guards = stage.route(counted)
    const ask = () => guards(stage.requestOf({ headers: bearer(token) }))
    expect(told(await ask())).toBe('access_token of 1')
    const asked = ask()
    // By then the use is asked of the record.
    for (let i = 0; i < 2; i += 1) await undefined
    stage.clock.at += 10_100
    const refused = await asked
    expect([told(refused), fieldOf(refused, 'retry-after')]).toEqual(['429 daily_limit_reached', '1'])
    expect(told(await ask())).toBe('access_token of 1')
  })

  it('of a user whose record is gone is refused, and that is not remembered', async () => {
    const stage = guardStage({ dailyLimit: 1 })
    stage.addUser(1, 'free')
    const token = await stage.tokenOf(1)
    const guards = stage.route(counted)
    const ask = () => guards(stage.requestOf({ headers: bearer(token) }))
    expect(told(await stage.route({ auth: 'required' })(stage.requestOf({ headers: bearer(token) })))).toBe(
      'access_token of 1',
    )
    stage.records.delete(1)
    expect(told(await ask())).toBe('429 daily_limit_reached')
    stage.addUser(1, 'free')
    expect(told(await ask())).toBe('access_token of 1')
  })

  it('is not spent before there is a connection to send it on, nor where none comes', async () => {
    const stage = guardStage()
    stage.addUser(1, 'free')
    const request = () => stage.requestOf({ headers: bearer(token) })
    const token = await stage.tokenOf(1)
    let storedBefore: number | undefined
    stage.connections.wait = async () => {
      throw new Refusal('upstream_unavailable')
    }
    expect(told(await stage.route(counted)(request()))).toBe('503 upstream_unavailable')
    stage.connections.wait = async () => {
      storedBefore = stage.seen.stored
    }
    expect(told(await stage.route(counted)(request()))).toBe('access_token of 1')
    expect([storedBefore, stage.seen.stored]).toEqual([0, 1])
  })

  it('is not spent on a client that has gone, and that counts as no decision', async () => {
    const stage = guardStage()
    stage.addUser(1, 'free')
    const request = stage.requestOf({ headers: bearer(await stage.tokenOf(1)), isGone: true })
    expect(await stage.route(counted)(request)).toEqual({
      allowed: false,
      thrown: expect.any(ClientDisconnected),
    })
    expect([stage.seen.stored, stage.guards.free_daily, request.told.at(-1)]).toEqual([
      0,
      none,
      'client_gone',
    ])
  })
})

describe('a local endpoint’s guards', () => {
  it('ask for a user, and for a plan where it has some', async () => {
    const stage = guardStage()
    stage.addUser(1, 'free')
    stage.target.isAvailable = false
    const headers = bearer(await stage.tokenOf(1))
    expect(told(await stage.endpoint(undefined)(stage.requestOf({})))).toBe('401 token_invalid')
    expect(told(await stage.endpoint(undefined)(stage.requestOf({ headers })))).toBe('access_token of 1')
    const tooSmall = stage.requestOf({ headers })
    expect(told(await stage.endpoint(['pro'])(tooSmall))).toBe('403 plan_insufficient')
    expect(tooSmall.told).toEqual(['authenticate', 'plan', 'refuse'])
    expect(told(await stage.endpoint(['free'])(stage.requestOf({ headers })))).toBe('access_token of 1')
    expect(stage.guards).toMatchObject({
      authenticate: { pass: 3, refuse: 1, error: 0 },
      plan: { pass: 1, refuse: 1, error: 0 },
    })
  })
})
