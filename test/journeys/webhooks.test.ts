// CONTRACT §5: registering and removing a webhook, through real requests.
import { beforeAll, describe, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'

const path = '/api/v1/user/webhook'
const secretPattern = /^whsec_[A-Za-z0-9+/]{32}$/

describeOverSetups('a webhook', setup => {
  const at = journey(setup)
  let user: TestUser
  beforeAll(async () => {
    user = await newUser(at.gateway, 'pro')
  })

  const register = (url: unknown, token = user.access) =>
    call(at.gateway.url, 'POST', path, { token, body: { url } })
  const remove = (token = user.access) => call(at.gateway.url, 'DELETE', path, { token })
  const stored = (id = user.id) =>
    at.gateway.sql<{ url: string; receiver: string; secret: string }>(
      'select url, receiver, secret from webhooks where user_id = $1',
      [id],
    )

  it.each([
    ['https://8.8.8.8/hook', '8.8.8.8:443'],
    ['HTTPS://8.8.8.8:8443/Hook?x=%2F&y=é#part', '8.8.8.8:8443'],
    ['https://[2606:4700:4700::1111]', '2606:4700:4700::1111:443'],
    ['https://no-such-name.invalid/hook', 'no-such-name.invalid:443'],
  ])('is stored and returned as written: %s', async (url, receiver) => {
    const answer = await register(url)
    expectAnswer(answer, 201, {
      url,
      secret: expect.stringMatching(secretPattern),
      created_at: new Date(at.gateway.clock.at).toISOString(),
    })
    expect(await stored()).toEqual([{ url, receiver, secret: answer.body.secret }])
    expect(at.gateway.log.join('')).not.toContain(answer.body.secret)
  })

  it('is replaced as a whole by the next, with a new secret; a refused one changes nothing', async () => {
    const first = await register('https://8.8.8.8/first')
    const second = await register('https://8.8.4.4/second')
    expect(second.body.secret).not.toBe(first.body.secret)
    expect((await register('https://127.0.0.1/third')).status).toBe(400)
    expect(await stored()).toMatchObject([{ url: 'https://8.8.4.4/second', secret: second.body.secret }])
  })

  it.each([
    undefined,
    null,
    7,
    '',
    ['https://8.8.8.8/'],
    'http://8.8.8.8/',
    'https:8.8.8.8/',
    ' https://8.8.8.8/',
    'https://8.8.8.8/a\nb',
    'https://user@8.8.8.8/',
    'https://@8.8.8.8/',
    'https://example.com./',
    'https://localhost/',
    'https://a.localhost/',
    'https://127.0.0.1/',
    'https://0177.0.0.1/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest',
    'https://[::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    `https://8.8.8.8/${'x'.repeat(2_048)}`,
  ])('at %j is refused, and nothing is stored', async url => {
    const other = await newUser(at.gateway, 'pro')
    const answer = await register(url, other.access)
    expectRefusal(answer, 400, 'webhook_url_invalid', 'URL de webhook invalide (HTTPS requis)')
    expect(await stored(other.id)).toEqual([])
  })

  it.each(['', 'no json', '[]', '"https://8.8.8.8/"', '{}'])('in the body %j is none', async body => {
    const answer = await call(at.gateway.url, 'POST', path, { token: user.access, body })
    expectRefusal(answer, 400, 'webhook_url_invalid', 'URL de webhook invalide (HTTPS requis)')
  })

  it('is read whatever the media type, and never beyond 64 KiB', async () => {
    const body = JSON.stringify({ url: 'https://8.8.8.8/typed' })
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'no type']) {
      const headers = { 'content-type': type }
      expect((await call(at.gateway.url, 'POST', path, { token: user.access, headers, body })).status).toBe(
        201,
      )
    }
    const big = await call(at.gateway.url, 'POST', path, { token: user.access, body: 'x'.repeat(65_537) })
    expectRefusal(big, 413, 'body_too_large', 'Requête trop volumineuse')
  })

  it('is guarded before its body is read: nobody learns what would be a right one', async () => {
    const body = { url: 'http://127.0.0.1/' }
    expect((await call(at.gateway.url, 'POST', path, { body })).status).toBe(401)
    const free = await newUser(at.gateway)
    expect((await register(body.url, free.access)).status).toBe(403)
  })

  it('is removed with 200, also where there is none, and what is pending is dropped', async () => {
    await register('https://8.8.8.8/hook')
    await at.gateway.sql(
      `insert into webhook_deliveries (alert_id, user_id, receiver, due_at, created_at)
       values (gen_random_uuid(), $1, '8.8.8.8:443', now() + interval '1 day', now())`,
      [user.id],
    )
    for (let i = 0; i < 2; i += 1) expectAnswer(await remove(), 200, { message: 'Webhook supprimé' })
    expect(await stored()).toEqual([])
    expect(
      await at.gateway.sql('select status from webhook_deliveries where user_id = $1', [user.id]),
    ).toEqual([{ status: 'dropped' }])
  })

  it('of 20 registered at once is one, and its secret one of those that were shown', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => register(`https://8.8.8.8/of-many/${i}`)),
    )
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    const [registered, ...others] = await stored()
    expect(others).toEqual([])
    expect(answers.find(({ body }) => body.secret === registered?.secret)?.body.url).toBe(registered?.url)
  })
})

describe('a webhook’s secret under auth.key_secret', () => {
  it('is stored encrypted, and stays so when another takes its place', async () => {
    const gateway = await startGateway('', undefined, { auth: ', key_secret: a-secret-of-our-own-0123' })
    try {
      const user = await newUser(gateway, 'pro')
      const body = { url: 'https://8.8.8.8/hook' }
      const answer = await call(gateway.url, 'POST', path, { token: user.access, body })
      expect(answer.body.secret).toMatch(secretPattern)
      const [row] = await gateway.sql<{ secret: string }>('select secret from webhooks')
      expect(row?.secret).toMatch(/^sealed\.v1\./)
      expect(row?.secret).not.toContain(String(answer.body.secret).slice('whsec_'.length))
      await call(gateway.url, 'POST', path, { token: user.access, body })
      const [replaced] = await gateway.sql<{ secret: string; secret_before: string }>(
        'select * from webhooks',
      )
      expect(replaced?.secret_before).toBe(row?.secret)
      expect(replaced?.secret).toMatch(/^sealed\.v1\./)
    } finally {
      await gateway.stop()
    }
  })
})

describe('the paths below the user’s endpoints', () => {
  it.each([
    '/api/v1/user/api-token/x',
    '/api/v1/user/webhook/1/2',
    '/API/v1/user//Webhook/x/',
    '/api/v1/user/api-token/%41',
  ])('%s is nobody’s, and never forwarded, not even under a route for everything', async target => {
    const upstream = await startUpstream()
    const gateway = await startGateway(`upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [{ path: /*, upstream: echo, auth: none }, { path: '/api/v1/*', upstream: echo, auth: none }]`)
    try {
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) {
        const answer = await call(gateway.url, method, target)
        expectRefusal(answer, 404, 'route_unknown', 'Route inconnue')
      }
      for (const [method, status] of [
        ['GET', 405],
        ['POST', 401],
      ] as const) {
        expect((await call(gateway.url, method, path)).status).toBe(status)
        expect((await call(gateway.url, method, '/api/v1/user/api-token')).status).toBe(status)
      }
      expect(upstream.received).toEqual([])
      expect((await call(gateway.url, 'GET', '/api/v1/user/other')).status).toBe(200)
    } finally {
      await gateway.stop()
      await upstream.close()
    }
  })
})
