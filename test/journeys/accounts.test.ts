// Spec §4: registration, login, refresh and logout, through a listening gateway.
import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { call, login, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const register = '/api/v1/auth/register'
const password = 'correct horse battery'
const day = 86_400_000

describeOverSetups('accounts and sessions', setup => {
  const at = journey(setup)
  const post = (path: string, body?: unknown) =>
    call(at.gateway.url, 'POST', `/api/v1/auth/${path}`, { body })

  it('register answers 201 and creates user and subscription with plan free', async () => {
    const answer = await post('register', { email: '  Ada@Example.COM ', password })
    expect(answer.status).toBe(201)
    expect(answer.body).toEqual({ message: 'Compte créé', user_id: expect.any(Number) })
    expect(answer.headers.get('cache-control')).toBe('no-store')
    const [stored] = await at.gateway.sql<Record<string, unknown>>(
      `select u.email, u.plan, u.is_active, u.daily_usage, u.last_usage_date, u.password_hash, s.plan as subscribed
         from users u join subscriptions s on s.user_id = u.id where u.id = $1`,
      [answer.body.user_id],
    )
    expect(stored).toMatchObject({
      email: 'ada@example.com',
      plan: 'free',
      is_active: 1,
      daily_usage: 0,
      last_usage_date: null,
      subscribed: 'free',
      password_hash: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/),
    })
  })

  it.each([
    ['', password, 'email_invalid', 'Email invalide'],
    ['no-at-sign', 'short', 'email_invalid', 'Email invalide'],
    ['a@b.c', '1234567', 'password_too_short', 'Mot de passe trop court (min 8 caractères)'],
    ['a@b.c', 'é'.repeat(1025), 'password_too_long', 'Mot de passe trop long (max 1024 caractères)'],
  ])(
    'register refuses email %j with the first rule that it breaks (%#)',
    async (email, given, code, error) => {
      const answer = await post('register', { email, password: given })
      expect(answer.status).toBe(400)
      expect(answer.body).toEqual({ error })
      expect(answer.headers.get('x-peage-error')).toBe(code)
    },
  )

  it('register refuses an email that an active user has, in any letter case', async () => {
    const user = await newUser(at.gateway)
    const answer = await post('register', { email: user.email.toUpperCase(), password })
    expect([answer.status, answer.body]).toEqual([409, { error: 'Email déjà enregistré' }])
  })

  it('register of an inactive account’s email is a 500 that keeps nothing', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const answer = await post('register', { email: user.email, password })
    expect([answer.status, answer.body]).toEqual([500, { error: 'Erreur interne' }])
    expect(await at.gateway.sql('select id from users where email = $1', [user.email])).toEqual([
      { id: user.id },
    ])
  })

  it('login answers the token pair, and stores only the hash of the refresh token, for 30 days', async () => {
    const user = await newUser(at.gateway)
    const answer = await post('login', { email: ` ${user.email.toUpperCase()} `, password })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      token_type: 'Bearer',
      plan: 'free',
    })
    const hash = createHash('sha256').update(String(answer.body.refresh_token)).digest('hex')
    const [stored] = await at.gateway.sql<{ user_id: number; revoked: number; expires_at: Date }>(
      'select user_id, revoked, expires_at from refresh_tokens where token_hash = $1',
      [hash],
    )
    expect(stored).toMatchObject({ user_id: user.id, revoked: 0 })
    expect(stored?.expires_at.getTime()).toBe(at.gateway.clock.at + 30 * day)
  })

  it('the access token carries sub as a string, plan and email, and lives 15 minutes', async () => {
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

  it('login without email or password is a 400', async () => {
    for (const body of [{ password }, { email: 'a@b.c' }, { email: '  ', password }, '', '[]']) {
      const answer = await post('login', body)
      expect([answer.status, answer.body]).toEqual([400, { error: 'Email et mot de passe requis' }])
    }
  })

  it('unknown user, inactive user and wrong password are the same 401', async () => {
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

  it('refresh exchanges a token once: its second use is rule 3', async () => {
    const user = await newUser(at.gateway)
    const first = await post('refresh', { refresh_token: ` ${user.refresh}\n` })
    expect([first.status, first.body.token_type, first.body.plan]).toEqual([200, 'Bearer', 'free'])
    const second = await post('refresh', { refresh_token: user.refresh })
    expect([second.status, second.body]).toEqual([
      401,
      { error: 'Refresh token invalide, révoqué ou expiré' },
    ])
    expect((await post('refresh', { refresh_token: first.body.refresh_token })).status).toBe(200)
  })

  it('refresh takes plan and email from the current user record', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql(`update users set plan = 'pro', email = $2 where id = $1`, [
      user.id,
      `x${user.email}`,
    ])
    const { body } = await post('refresh', { refresh_token: user.refresh })
    expect(body.plan).toBe('pro')
    const claims = JSON.parse(
      Buffer.from(String(body.access_token).split('.')[1] ?? '', 'base64url').toString(),
    )
    expect(claims).toMatchObject({ plan: 'pro', email: `x${user.email}` })
  })

  it('refresh answers each of the spec’s refusals', async () => {
    const user = await newUser(at.gateway)
    const cases: [unknown, number, string][] = [
      [undefined, 400, 'refresh_token manquant'],
      [{ refresh_token: ' \t' }, 400, 'refresh_token manquant'],
      [{ refresh_token: 'x' }, 401, 'Refresh token invalide ou expiré'],
      [{ refresh_token: user.access }, 401, 'Refresh token invalide ou expiré'],
    ]
    for (const [body, status, error] of cases) {
      const answer = await post('refresh', body)
      expect([answer.status, answer.body]).toEqual([status, { error }])
    }
  })

  it('refresh of an inactive user is rule 4, and revokes nothing', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const answer = await post('refresh', { refresh_token: user.refresh })
    expect([answer.status, answer.body]).toEqual([401, { error: 'Utilisateur introuvable' }])
    await at.gateway.sql('update users set is_active = 1 where id = $1', [user.id])
    expect((await post('refresh', { refresh_token: user.refresh })).status).toBe(200)
  })

  it('a refresh token dies with its record’s expiry, and the JWT’s own expiry is rule 2', async () => {
    const user = await newUser(at.gateway)
    const hash = createHash('sha256').update(user.refresh).digest('hex')
    const start = at.gateway.clock.at
    await at.gateway.sql('update refresh_tokens set expires_at = $2 where token_hash = $1', [
      hash,
      new Date(start),
    ])
    const inStore = await post('refresh', { refresh_token: user.refresh })
    expect([inStore.status, inStore.body.error]).toEqual([401, 'Refresh token invalide, révoqué ou expiré'])
    at.gateway.clock.at = start + 30 * day + 1000
    const expired = await post('refresh', { refresh_token: user.refresh })
    at.gateway.clock.at = start
    expect([expired.status, expired.body.error]).toEqual([401, 'Refresh token invalide ou expiré'])
  })

  it('logout revokes the token whatever its state, and always answers 200', async () => {
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
  })

  it('logout does not revoke the access token', async () => {
    const user = await newUser(at.gateway)
    await post('logout', { refresh_token: user.refresh })
    expect((await call(at.gateway.url, 'GET', '/any/x', { token: user.access })).status).toBe(200)
  })

  it('one of 20 concurrent registrations of one email is a 201, the others are 409', async () => {
    const email = `together.${process.pid}@example.com`
    const answers = await Promise.all(Array.from({ length: 20 }, () => post('register', { email, password })))
    expect(answers.map(answer => answer.status).sort()).toEqual([201, ...Array(19).fill(409)])
    expect(await at.gateway.sql('select 1 as one from users where email = $1', [email])).toHaveLength(1)
  })

  it('one of 50 concurrent refreshes of one token gets a pair', async () => {
    const user = await newUser(at.gateway)
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => post('refresh', { refresh_token: user.refresh })),
    )
    expect(answers.filter(answer => answer.status === 200)).toHaveLength(1)
    const lost = answers.filter(answer => answer.status !== 200)
    expect(new Set(lost.map(answer => answer.headers.get('x-peage-error')))).toEqual(
      new Set(['refresh_token_inactive']),
    )
  })

  it('any other method on these paths is a 405 that allows POST', async () => {
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, register)
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
    }
  })

  it('these paths are ours in any letter case, and below them nothing is ever forwarded', async () => {
    const user = await newUser(at.gateway)
    const { email } = user
    const odd = await call(at.gateway.url, 'POST', '/API/v1//Auth/%4cogin/', { body: { email, password } })
    expect(odd.status).toBe(200)
    for (const path of [
      '/api/v1/auth',
      '/api/v1/auth/nothing',
      '/api/v1/user/api-token/x',
      '/api/v1/user/webhook/x',
    ]) {
      const answer = await call(at.gateway.url, 'POST', path)
      expect([answer.status, answer.body]).toEqual([404, { error: 'Route inconnue' }])
    }
    expect(at.upstream.received).toEqual([])
  })

  it('the JWKS holds public keys only, and may be cached for 300 s', async () => {
    const answer = await call(at.gateway.url, 'GET', '/.well-known/jwks.json')
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300')
    const [key] = answer.body.keys as Record<string, unknown>[]
    expect(Object.keys(key ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    // No secret is set: sealed under the empty one it would look safe.
    const [stored] = await at.gateway.sql<{ private_jwk: string }>('select private_jwk from signing_keys')
    expect(JSON.parse(stored?.private_jwk ?? '')).toMatchObject({ kty: 'EC', d: expect.any(String) })
  })

  it('revoking a user’s sessions ends those that are open, and a new login opens another', async () => {
    const user = await newUser(at.gateway)
    const answer = await call(at.gateway.admin, 'DELETE', `/admin/v1/users/${user.id}/sessions`, {
      token: at.gateway.adminToken,
    })
    expect(answer.status).toBe(200)
    expect((await post('refresh', { refresh_token: user.refresh })).status).toBe(401)
    const again = await login(at.gateway.url, user.email, user.password)
    expect((await post('refresh', { refresh_token: again.refresh })).status).toBe(200)
  })
})
