// Sends real requests to the built-in endpoint for plan upgrades, and to declared routes that replace this endpoint.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, requestBytes, value, values } from '../security/raw-client.ts'
import { call, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const path = '/api/v1/subscription/upgrade'

describeOverSetups('the upgrade path', setup => {
  const at = journey(
    setup,
    {},
    () => `subscription: { upgrade_url: 'https://pay.example.com/{plan}?user={user_id}' }`,
  )

  it('responds to GET with the checkout URL, and to POST with a 303 redirect to this URL, without a body', async () => {
    const { id, access: token } = await newUser(at.gateway)
    const checkout_url = `https://pay.example.com/premium?user=${id}`
    const shown = { current_plan: 'free', plans: ['free', 'premium', 'pro'], checkout_url }
    expectAnswer(await call(at.gateway.url, 'GET', path, { token }), 200, shown)
    const answer = await call(at.gateway.url, 'POST', path, { token, body: { plan: 'pro' } })
    expect([answer.status, answer.text, answer.headers.get('location')]).toEqual([
      303,
      '',
      `https://pay.example.com/pro?user=${id}`,
    ])
    for (const [name, value] of [
      ['cache-control', 'no-store'],
      ['content-length', '0'],
      ['content-type', null],
      ['x-peage-error', null],
    ] as const)
      expect([name, answer.headers.get(name)]).toEqual([name, value])
    expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._:~+/=-]{1,128}$/)
  })

  it('responds to HEAD with the same headers as to GET, without a body', async () => {
    const { access } = await newUser(at.gateway)
    const line = `Authorization: Bearer ${access}`
    const [get, head] = [
      await ask(at.gateway.url, requestBytes('GET', path, [line])),
      await ask(at.gateway.url, requestBytes('HEAD', path, [line]), 'HEAD'),
    ]
    expect([head?.status, head?.body.length]).toEqual([200, 0])
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      expect(head && values(head, name)).toEqual(get && values(get, name))
    }
    expect(Number(get && value(get, 'content-length'))).toBe(get?.body.length)
  })

  it('allows only GET, HEAD and POST', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await call(at.gateway.url, method, path)
      expectRefusal(answer, 405, 'method_not_allowed', 'Méthode non autorisée')
      expect(answer.headers.get('allow')).toBe('GET, HEAD, POST')
    }
  })
})

describe('a declared route', () => {
  let upstream: Upstream
  beforeAll(async () => {
    upstream = await startUpstream()
  })
  afterAll(() => upstream.close())

  async function withRoutes(routes: string[], work: (gateway: TestGateway) => Promise<void>): Promise<void> {
    const gateway = await startGateway(`upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [${routes.map(route => `{ upstream: echo, auth: none, ${route} }`).join(', ')}]`)
    upstream.received.length = 0
    try {
      await work(gateway)
    } finally {
      await gateway.stop()
    }
  }
  const asHost = async (gateway: TestGateway, method: string, host: string) => {
    const answer = await ask(gateway.url, requestBytes(method, path, [`Host: ${host}`, 'Content-Length: 0']))
    return [answer?.status, answer && value(answer, 'x-peage-error'), answer && value(answer, 'allow')]
  }

  it('with exactly the path of the built-in endpoint replaces the endpoint and the guards of the endpoint', () =>
    withRoutes([`path: ${path}`], async gateway => {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
        expect((await call(gateway.url, method, path)).status).toBe(200)
      }
      expect((await call(gateway.url, 'GET', '/API/v1/Subscription/upgrade/')).status).toBe(200)
      expect(upstream.received.map(({ method }) => method)).toEqual(['GET', 'POST', 'PUT', 'DELETE', 'GET'])
    }))

  it('with hosts replaces the built-in endpoint only on these hosts, and methods that the route does not declare get 405 there', () =>
    withRoutes([`path: ${path}, hosts: [pay.example.com], methods: [POST]`], async gateway => {
      for (const [method, host, ...answered] of [
        ['POST', 'pay.example.com', 200, undefined, undefined],
        ['POST', 'PAY.example.com.:8080', 200, undefined, undefined],
        ['GET', 'pay.example.com', 405, 'method_not_allowed', 'POST'],
        ['GET', 'other.example.com', 401, 'token_invalid', undefined],
        ['PUT', 'other.example.com', 405, 'method_not_allowed', 'GET, HEAD, POST'],
      ] as const)
        expect([method, host, ...(await asHost(gateway, method, host))]).toEqual([method, host, ...answered])
    }))

  it('with a pattern as its path does not replace the built-in endpoint, even if the pattern matches the path of the endpoint', () =>
    withRoutes(
      [
        '/*',
        '/api/v1/*',
        '/api/v1/subscription/*',
        `${path}/*`,
        '/api/v1/:area/upgrade',
        '/api/v1/subscription/:what',
      ].map(route => `path: '${route}'`),
      async gateway => {
        for (const method of ['GET', 'POST'])
          expectRefusal(
            await call(gateway.url, method, path),
            401,
            'token_invalid',
            'Token invalide ou expiré',
          )
        expect((await call(gateway.url, 'PUT', path)).status).toBe(405)
        expect(upstream.received).toEqual([])
        expect((await call(gateway.url, 'GET', `${path}/done`)).status).toBe(200)
      },
    ))
})
