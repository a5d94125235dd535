// Users create and remove their webhook and their API key with real requests.
import { beforeAll, describe, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'

const path = '/api/v1/user/webhook'
const tokenPath = '/api/v1/user/api-token'
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
    ['https://no-such-name.invalid/hook', 'no-such-name.invalid:443'],
  ])('is stored and returned with its URL unchanged: %s', async (url, receiver) => {
    const answer = await register(url)
    expectAnswer(answer, 201, {
      url,
      secret: expect.stringMatching(secretPattern),
      created_at: new Date(at.gateway.clock.at).toISOString(),
    })
    expect(await stored()).toEqual([{ url, receiver, secret: answer.body.secret }])
    expect(at.gateway.log.join('')).not.toContain(answer.body.secret)
  })

  it.each([
    undefined,
    ['https://8.8.8.8/'],
    'http://8.8.8.8/',
    'https://user@8.8.8.8/',
    'https://127.0.0.1/',
    'https://[64:ff9b::7f00:1]/',
  ])('with the URL %j is refused and not stored', async url => {
    const other = await newUser(at.gateway, 'pro')
    const answer = await register(url, other.access)
    expectRefusal(answer, 400, 'webhook_url_invalid', 'URL de webhook invalide (HTTPS requis)')
    expect(await stored(other.id)).toEqual([])
  })

  it('is refused by the guards of the endpoint before the request body is checked', async () => {
    const body = { url: 'http://127.0.0.1/' }
    expect((await call(at.gateway.url, 'POST', path, { body })).status).toBe(401)
    const free = await newUser(at.gateway)
    expect((await register(body.url, free.access)).status).toBe(403)
  })

  it('is removed, and its pending deliveries are dropped; a second removal also returns 200', async () => {
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
  it('can be registered and removed with an API key; routes and the other user endpoints accept this key too', async () => {
    const withKey = (key: unknown, method: string, target: string, body?: object) =>
      call(at.gateway.url, method, target, { headers: { 'x-api-key': String(key) }, body })
    const { api_token: key } = (await call(at.gateway.url, 'POST', tokenPath, { token: user.access })).body
    expect(at.gateway.log.join('')).not.toContain(key)
    expect((await withKey(key, 'GET', '/any/x')).status).toBe(200)
    expect(at.upstream.received[0]?.headers['x-user-id']).toBe(String(user.id))
    expect((await withKey(key, 'GET', '/api/v1/subscription/upgrade')).status).toBe(200)
    expect((await withKey(key, 'POST', path, { url: 'https://8.8.8.8/hook' })).status).toBe(201)
    expect((await withKey(key, 'DELETE', path)).status).toBe(200)
    const next = await withKey(key, 'POST', tokenPath)
    expect([next.status, (await withKey(key, 'GET', '/any/x')).status]).toEqual([201, 401])
    const last = next.body.api_token
    expect((await withKey(last, 'DELETE', tokenPath)).status).toBe(200)
    expect((await withKey(last, 'DELETE', tokenPath)).status).toBe(401)
  })

  it.each([tokenPath, path])('%s allows only POST and DELETE', async target => {
    for (const method of ['GET', 'PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, target, { token: user.access })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, DELETE'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
    }
  })
})

describe('a webhook secret with auth.key_secret', () => {
  it('is stored encrypted; after a replacement, the previous secret is still encrypted', async () => {
    const gateway = await startGateway('', undefined, { auth: ', key_secret: a-secret-of-our-own-0123' })
    try {
      const { access: token } = await newUser(gateway, 'pro')
      const register = () => call(gateway.url, 'POST', path, { token, body: { url: 'https://8.8.8.8/hook' } })
      const { body } = await register()
      await register()
      const [row] = await gateway.sql<{ secret: string; secret_before: string }>('select * from webhooks')
      for (const stored of [row?.secret, row?.secret_before]) expect(stored).toMatch(/^sealed\.v1\./)
      expect(row?.secret_before).not.toContain(String(body.secret).slice('whsec_'.length))
    } finally {
      await gateway.stop()
    }
  })
})

it('a path below the user endpoints returns 404 and is never forwarded, even under a catch-all route', async () => {
  const upstream = await startUpstream()
  const gateway = await startGateway(`upstreams: { echo: { targets: ['${upstream.url}'] } }
routes: [{ path: /*, upstream: echo, auth: none }, { path: '/api/v1/*', upstream: echo, auth: none }]`)
  const statusOf = async (method: string, target: string) => (await call(gateway.url, method, target)).status
  try {
    for (const target of [
      '/api/v1/user/api-token/x',
      '/api/v1/user/webhook/1/2',
      '/API/v1/user//Webhook/x/',
      '/api/v1/user/api-token/%41',
    ])
      for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS'])
        expect([method, target, await statusOf(method, target)]).toEqual([method, target, 404])
    for (const target of [path, tokenPath])
      expect([await statusOf('GET', target), await statusOf('POST', target)]).toEqual([405, 401])
    expect(upstream.received).toEqual([])
    expect(await statusOf('GET', '/api/v1/user/other')).toBe(200)
  } finally {
    await gateway.stop()
    await upstream.close()
  }
})
