import { describe, expect, it } from 'vitest'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { claimsOf } from '../support/sessions.ts'
import { describeOverSetups } from '../support/setups.ts'

const register = '/api/v1/auth/register'
const password = 'correct horse battery'

describeOverSetups('accounts and sessions', setup => {
  const at = journey(setup)
  const post = (path: string, body?: unknown) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body })

  it('register returns 201, and creates a user and a subscription with the plan `free`', async () => {
    const answer = await post('register', { email: '  Ada@Example.COM ', password })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({ message: 'Compte créé', user_id: expect.any(Number) })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const [stored] = await at.gateway.sql<Record<string, unknown>>(
      'select u.email, s.plan from users u join subscriptions s on s.user_id = u.id where u.id = $1',
      [answer.body.user_id],
    )
    expect(stored).toEqual({ email: 'ada@example.com', plan: 'free' })
  })

  it('login returns the token pair', async () => {
    const user = await newUser(at.gateway)
    const answer = await post('login', { email: ` ${user.email.toUpperCase()} `, password })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      token_type: 'Bearer',
      plan: 'free',
    })
  })

  it('the access token contains `sub` (a string), `plan` and `email`, and is valid for 15 minutes', async () => {
    const user = await newUser(at.gateway)
    const [header, claims] = user.access.split('.').map(part => Buffer.from(part, 'base64url').toString())
    expect(JSON.parse(String(header))).toMatchObject({ alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) })
    const { iat, exp, ...said } = JSON.parse(String(claims)) as Record<string, unknown>
    expect(said).toMatchObject({
      sub: String(user.id),
      plan: 'free',
      email: user.email,
      iss: 'peage',
      aud: 'peage',
    })
    expect(Number(exp) - Number(iat)).toBe(15 * 60)
  })

  it('login returns the same 401 for an unknown user, an inactive user and a wrong password', async () => {
    const inactive = await newUser(at.gateway)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [inactive.id])
    const active = await newUser(at.gateway)
    for (const body of [
      { email: 'nobody@example.com', password },
      { email: inactive.email, password },
      { email: active.email, password: `${password} ` },
    ]) {
      const answer = await post('login', body)
      expect([answer.status, answer.text]).toEqual([401, '{"error":"Identifiants invalides"}'])
    }
  })

  it('after a refresh, the access token contains the current plan and email of the user', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql(`update users set plan = 'pro', email = $2 where id = $1`, [
      user.id,
      `x${user.email}`,
    ])
    const { body } = await post('refresh', { refresh_token: user.refresh })
    expect(body.plan).toBe('pro')
    expect(claimsOf(String(body.access_token))).toMatchObject({ plan: 'pro', email: `x${user.email}` })
  })

  it('logout revokes only the refresh token and always returns 200', async () => {
    const user = await newUser(at.gateway)
    for (const body of [
      { refresh_token: user.refresh },
      { refresh_token: user.refresh },
      { refresh_token: 'x' },
      '',
    ]) {
      const answer = await post('logout', body)
      expect([answer.status, answer.body]).toEqual([200, { message: 'Déconnexion réussie' }])
    }
    const answer = await post('refresh', { refresh_token: user.refresh })
    expect(answer.headers.get('x-peage-error')).toBe('refresh_token_inactive')
    expect((await call(at.gateway.url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
  })

  it('an auth path returns 405 with Allow: POST for any other method', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, register)
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
    }
  })

  it('an auth path matches in any letter case and is never forwarded to an upstream', async () => {
    const user = await newUser(at.gateway)
    const { email } = user
    const odd = await call(at.gateway.url, 'POST', '/API/v1//Auth/%4cogin/', { body: { email, password } })
    expect(odd.status).toBe(200)
    for (const path of ['/api/v1/auth', '/api/v1/auth/nothing']) {
      const answer = await call(at.gateway.url, 'POST', path)
      expect([answer.status, answer.body]).toEqual([404, { error: 'Route inconnue' }])
    }
    expect(at.upstream.received).toEqual([])
  })

  it('the JWKS contains only public keys and may be cached for 300 s', async () => {
    const answer = await call(at.gateway.url, 'GET', '/.well-known/jwks.json')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    const [key] = answer.body.keys as Record<string, unknown>[]
    expect(Object.keys(key ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    // Without auth.key_secret, the key is stored unencrypted, because encryption with an empty secret would protect
    // nothing.
    const [stored] = await at.gateway.sql<{ private_jwk: string }>('select private_jwk from signing_keys')
    expect(JSON.parse(stored?.private_jwk ?? '')).toMatchObject({ kty: 'EC', d: expect.any(String) })
  })

  describe('a deactivated user', () => {
    const administer = (method: string, path: string, body?: unknown) =>
      call(at.gateway.admin, method, `/admin/v1/users/${path}`, { token: at.gateway.adminToken, body })
    const activate = async ({ id }: TestUser, is_active: 0 | 1) =>
      expect((await administer('PATCH', String(id), { is_active })).status).toBe(200)
    async function withKey(): Promise<TestUser & { key: string }> {
      const user = await newUser(at.gateway, 'pro')
      const key = `peage_key_of_${user.id}`
      await giveKey(at.gateway, user, key)
      return { ...user, key }
    }
    const statuses = async ({ access, key, refresh }: TestUser & { key: string }) => [
      (await call(at.gateway.url, 'GET', '/any/x', { token: access })).status,
      (await call(at.gateway.url, 'GET', '/any/x', { headers: { 'x-api-key': key } })).status,
      (await post('refresh', { refresh_token: refresh })).status,
    ]

    it('is refused; after a reactivation, the same access token, API key and session work again', async () => {
      const user = await withKey()
      await activate(user, 0)
      expect(await statuses(user)).toEqual([401, 401, 401])
      await activate(user, 1)
      expect(await statuses(user)).toEqual([200, 200, 200])
    })

    it('stays refused after a reactivation if the sessions and the key were revoked and the access token has expired', async () => {
      const user = await withKey()
      await activate(user, 0)
      expect((await administer('DELETE', `${user.id}/sessions`)).status).toBe(200)
      expect((await administer('DELETE', `${user.id}/api-token`)).status).toBe(204)
      at.gateway.clock.at += 15 * 60_000 + 5_000
      await activate(user, 1)
      expect(await statuses(user)).toEqual([401, 401, 401])
    })
  })
})
