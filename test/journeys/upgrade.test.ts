// CONTRACT §5: the upgrade path through real requests, and the routes that take its place.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, requestBytes, value, values } from '../security/raw-client.ts'
import { call, giveKey, newUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const path = '/api/v1/subscription/upgrade'
const plans = ['free', 'premium', 'pro']

describeOverSetups('the upgrade path', setup => {
  let stores: Stores
  let gateway: TestGateway
  beforeAll(async () => {
    stores = await setup.open()
    gateway = await startGateway(
      `subscription: { upgrade_url: 'https://pay.example.com/{plan}?user={user_id}' }`,
      stores,
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await setup.drop(stores)
  })

  it.each([
    ['free', 'premium'],
    ['premium', 'pro'],
    ['pro', undefined],
  ] as const)('GET tells a user of plan %s where %s is paid for', async (plan, next) => {
    const { id, access: token } = await newUser(gateway, plan)
    const checkout_url = next === undefined ? null : `https://pay.example.com/${next}?user=${id}`
    expectAnswer(await call(gateway.url, 'GET', path, { token }), 200, {
      current_plan: plan,
      plans,
      checkout_url,
    })
  })

  it('HEAD has the fields of GET and no body', async () => {
    const { access } = await newUser(gateway)
    const line = `Authorization: Bearer ${access}`
    const [get, head] = [
      await ask(gateway.url, requestBytes('GET', path, [line])),
      await ask(gateway.url, requestBytes('HEAD', path, [line]), 'HEAD'),
    ]
    expect([head?.status, head?.body.length]).toEqual([200, 0])
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      expect(head && values(head, name)).toEqual(get && values(get, name))
    }
    expect(Number(get && value(get, 'content-length'))).toBe(get?.body.length)
  })

  it.each([
    ['free', {}, 'premium'],
    ['free', { plan: 'pro' }, 'pro'],
    ['premium', undefined, 'pro'],
  ] as const)(
    'POST from %s with %j is a 303 to where %s is paid for, without a body',
    async (plan, body, to) => {
      const { id, access: token } = await newUser(gateway, plan)
      const answer = await call(gateway.url, 'POST', path, { token, ...(body && { body }) })
      expect([answer.status, answer.text]).toEqual([303, ''])
      expect(answer.headers.get('location')).toBe(`https://pay.example.com/${to}?user=${id}`)
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(answer.headers.get('content-length')).toBe('0')
      expect(answer.headers.get('content-type')).toBeNull()
      expect(answer.headers.get('x-peage-error')).toBeNull()
      expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._:~+/=-]{1,128}$/)
    },
  )

  it.each([
    ['free', { plan: 'gold' }],
    ['free', { plan: 'free' }],
    ['premium', { plan: 'premium' }],
    ['pro', { plan: 'pro' }],
    ['pro', {}],
  ] as const)('POST from %s with %j is 400', async (plan, body) => {
    const { access: token } = await newUser(gateway, plan)
    expectRefusal(
      await call(gateway.url, 'POST', path, { token, body }),
      400,
      'plan_invalid',
      'Plan invalide',
    )
  })

  it('goes by the record, not by the token', async () => {
    const { id, access: token } = await newUser(gateway)
    await gateway.sql(`update users set plan = 'premium' where id = $1`, [id])
    expect((await call(gateway.url, 'GET', path, { token })).body.current_plan).toBe('premium')
  })

  it('is for everybody who is somebody: a key will do, nothing will not', async () => {
    const user = await newUser(gateway)
    await giveKey(gateway, user, 'peage_upgrading')
    const headers = { 'x-api-key': 'peage_upgrading' }
    expect((await call(gateway.url, 'GET', path, { headers })).status).toBe(200)
    expect((await call(gateway.url, 'POST', path, { headers })).status).toBe(303)
    for (const method of ['GET', 'POST']) {
      const answer = await call(gateway.url, method, path, { body: method === 'POST' ? {} : undefined })
      expectRefusal(answer, 401, 'token_invalid', 'Token invalide ou expiré')
      expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    }
  })

  it('knows GET, HEAD and POST alone', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await call(gateway.url, method, path)
      expectRefusal(answer, 405, 'method_not_allowed', 'Méthode non autorisée')
      expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
    }
  })

  it('of two credentials of one kind is 400', async () => {
    const line = 'Authorization: Bearer x'
    const answer = await ask(gateway.url, requestBytes('GET', path, [line, line]))
    expect([answer?.status, answer && value(answer, 'x-peage-error')]).toEqual([400, 'credentials_ambiguous'])
  })
})

describe('the upgrade path without an address', () => {
  it('is null in GET and 501 in POST', async () => {
    const gateway = await startGateway('')
    try {
      const { access: token } = await newUser(gateway)
      const get = await call(gateway.url, 'GET', path, { token })
      expectAnswer(get, 200, { current_plan: 'free', plans, checkout_url: null })
      const post = await call(gateway.url, 'POST', path, { token })
      expectRefusal(post, 501, 'payment_not_configured', 'Paiement non configuré')
    } finally {
      await gateway.stop()
    }
  })
})

describe('a declared route', () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await startUpstream()
  })
  afterAll(() => upstream.close())

  async function withRoutes(routes: string, work: (gateway: TestGateway) => Promise<void>): Promise<void> {
    const gateway = await startGateway(`upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [${routes}]`)
    upstream.received.length = 0
    try {
      await work(gateway)
    } finally {
      await gateway.stop()
    }
  }
  const asHost = async (gateway: TestGateway, method: string, host: string, target = path) => {
    const answer = await ask(
      gateway.url,
      requestBytes(method, target, [`Host: ${host}`, 'Content-Length: 0']),
    )
    return [answer?.status, answer && value(answer, 'x-peage-error'), answer && value(answer, 'allow')]
  }

  it('at the very path replaces the built-in answer, with its own guards', () =>
    withRoutes(`{ path: ${path}, upstream: echo, auth: none }`, async gateway => {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
        expect((await call(gateway.url, method, path)).status).toBe(200)
      }
      expect((await call(gateway.url, 'GET', '/API/v1/Subscription/upgrade/')).status).toBe(200)
      expect(upstream.received.map(({ method }) => method)).toEqual(['GET', 'POST', 'PUT', 'DELETE', 'GET'])
    }))

  it('replaces all of it: a method that it does not declare is 405, and not ours', () =>
    withRoutes(`{ path: ${path}, upstream: echo, auth: none, methods: [POST] }`, async gateway => {
      const answer = await call(gateway.url, 'GET', path)
      expectRefusal(answer, 405, 'method_not_allowed', 'Méthode non autorisée')
      expect(answer.headers.get('allow')).toBe('POST')
      expect((await call(gateway.url, 'POST', path)).status).toBe(200)
    }))

  it('of one host replaces it there alone', () =>
    withRoutes(
      `{ path: ${path}, upstream: echo, auth: none, hosts: [pay.example.com], methods: [POST] }`,
      async gateway => {
        expect(await asHost(gateway, 'POST', 'pay.example.com')).toEqual([200, undefined, undefined])
        expect(await asHost(gateway, 'POST', 'PAY.example.com.:8080')).toEqual([200, undefined, undefined])
        expect(await asHost(gateway, 'GET', 'pay.example.com')).toEqual([405, 'method_not_allowed', 'POST'])
        expect(await asHost(gateway, 'GET', 'other.example.com')).toEqual([401, 'token_invalid', undefined])
        expect(await asHost(gateway, 'PUT', 'other.example.com')).toEqual([
          405,
          'method_not_allowed',
          'GET, HEAD, POST',
        ])
      },
    ))

  it.each([
    '/*',
    '/api/v1/*',
    '/api/v1/subscription/*',
    `${path}/*`,
    '/api/v1/:area/upgrade',
    '/api/v1/subscription/:what',
  ])('at %s does not', route =>
    withRoutes(`{ path: '${route}', upstream: echo, auth: none }`, async gateway => {
      for (const method of ['GET', 'POST']) {
        const answer = await call(gateway.url, method, path)
        expectRefusal(answer, 401, 'token_invalid', 'Token invalide ou expiré')
      }
      expect((await call(gateway.url, 'PUT', path)).status).toBe(405)
      expect(upstream.received).toEqual([])
    }),
  )

  it('below it is a route like any other', () =>
    withRoutes(`{ path: '${path}/*', upstream: echo, auth: none }`, async gateway => {
      expect((await call(gateway.url, 'GET', `${path}/done`)).status).toBe(200)
    }))
})
