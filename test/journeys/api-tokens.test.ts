// CONTRACT §5: a pro user's personal API token, through real requests.
import { createHash } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const path = '/api/v1/user/api-token'
const upgrade = '/api/v1/subscription/upgrade'

describeOverSetups('personal API tokens', setup => {
  const at = journey(setup)
  let user: TestUser
  beforeAll(async () => {
    user = await newUser(at.gateway, 'pro')
  })

  const make = (who: { token?: string; headers?: Record<string, string> }) =>
    call(at.gateway.url, 'POST', path, who)
  const withKey = (key: string, target = '/any/x') =>
    call(at.gateway.url, 'GET', target, { headers: { 'x-api-key': key } })
  const live = (id: number) =>
    at.gateway.sql<{ token_hash: string }>(
      'select token_hash from api_tokens where user_id = $1 and revoked = 0',
      [id],
    )
  const hashOf = (key: unknown) => createHash('sha256').update(String(key)).digest('hex')

  it('are made with 201, shown once, and stored as a hash alone', async () => {
    const answer = await make({ token: user.access })
    expectAnswer(answer, 201, {
      api_token: expect.stringMatching(/^peage_[0-9A-Za-z]{36}$/),
      created_at: new Date(at.gateway.clock.at).toISOString(),
    })
    expect(answer.headers.get('x-request-id')).toMatch(/^[A-Za-z0-9._:~+/=-]{1,128}$/)
    expect(await live(user.id)).toEqual([{ token_hash: hashOf(answer.body.api_token) }])
    expect(at.gateway.log.join('')).not.toContain(answer.body.api_token)
  })

  it('are good wherever the access token is, at these endpoints too', async () => {
    const { body } = await make({ token: user.access })
    const key = String(body.api_token)
    const forwarded = await withKey(key)
    expect([forwarded.status, at.upstream.received[0]?.headers['x-user-id']]).toEqual([200, String(user.id)])
    expect((await withKey(key, upgrade)).status).toBe(200)
    const webhook = { headers: { 'x-api-key': key }, body: { url: 'https://8.8.8.8/hook' } }
    expect((await call(at.gateway.url, 'POST', '/api/v1/user/webhook', webhook)).status).toBe(201)
    expect((await call(at.gateway.url, 'DELETE', '/api/v1/user/webhook', webhook)).status).toBe(200)
    const next = await make({ headers: { 'x-api-key': key } })
    expect(next.status).toBe(201)
    expect((await withKey(key)).status).toBe(401)
    const last = { headers: { 'x-api-key': String(next.body.api_token) } }
    expect((await call(at.gateway.url, 'DELETE', path, last)).status).toBe(200)
    expect((await call(at.gateway.url, 'DELETE', path, last)).status).toBe(401)
  })

  it('are revoked with 200, also where there is none', async () => {
    const key = String((await make({ token: user.access })).body.api_token)
    for (let i = 0; i < 2; i += 1) {
      const answer = await call(at.gateway.url, 'DELETE', path, { token: user.access })
      expectAnswer(answer, 200, { message: 'Token révoqué' })
    }
    expect((await withKey(key)).status).toBe(401)
    expect(await live(user.id)).toEqual([])
  })

  it.each([path, '/api/v1/user/webhook'])('%s knows POST and DELETE alone', async target => {
    for (const method of ['GET', 'PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, target, { token: user.access })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, DELETE'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
      if (method !== 'HEAD') expect(answer.body).toEqual({ error: 'Méthode non autorisée' })
    }
  })
})
