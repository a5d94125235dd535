import { beforeAll, expect, it } from 'vitest'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
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
  it('are good wherever the access token is, at these endpoints too', async () => {
    const { body } = await make({ token: user.access })
    const key = String(body.api_token)
    expect(at.gateway.log.join('')).not.toContain(key)
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

  it.each([path, '/api/v1/user/webhook'])('%s knows POST and DELETE alone', async target => {
    for (const method of ['GET', 'PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, target, { token: user.access })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, DELETE'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
      if (method !== 'HEAD') expect(answer.body).toEqual({ error: 'Méthode non autorisée' })
    }
  })
})
