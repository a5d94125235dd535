// CONTRACT §5: a pro user's personal API token, through real requests.
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { ask, value } from '../security/raw-client.ts'
import { call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectAnswer, expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const path = '/api/v1/user/api-token'
const upgrade = '/api/v1/subscription/upgrade'
const guarded = [
  ['POST', path],
  ['DELETE', path],
  ['POST', '/api/v1/user/webhook'],
  ['DELETE', '/api/v1/user/webhook'],
] as const

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

  it('die with the next one, at once', async () => {
    const first = String((await make({ token: user.access })).body.api_token)
    expect((await withKey(first)).status).toBe(200)
    const second = String((await make({ token: user.access })).body.api_token)
    expectRefusal(await withKey(first), 401, 'token_invalid', 'Token invalide ou expiré')
    expect((await withKey(second)).status).toBe(200)
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

  it('of 20 made at once are one', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => make({ token: user.access })))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201))
    const keys = await live(user.id)
    expect(keys).toHaveLength(1)
    const works = await Promise.all(answers.map(({ body }) => withKey(String(body.api_token))))
    expect(works.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  it('are made whatever the body is', async () => {
    for (const body of ['', 'no json', '[]', '{"api_token":"mine"}']) {
      const answer = await call(at.gateway.url, 'POST', path, { token: user.access, body })
      expect(answer.status).toBe(201)
      expect(answer.body.api_token).not.toBe('mine')
    }
    const big = await call(at.gateway.url, 'POST', path, { token: user.access, body: 'x'.repeat(70_000) })
    expectRefusal(big, 413, 'body_too_large', 'Requête trop volumineuse')
  })

  it.each(guarded)(
    '%s %s is refused to free and premium users, by their present plan',
    async (method, target) => {
      for (const plan of ['free', 'premium'] as const) {
        const other = await newUser(at.gateway, plan)
        const answer = await call(at.gateway.url, method, target, { token: other.access })
        expectRefusal(answer, 403, 'plan_insufficient', {
          error: 'Plan insuffisant',
          required: ['pro'],
          current_plan: plan,
          upgrade_url: upgrade,
        })
      }
      const fallen = await newUser(at.gateway, 'pro')
      await call(at.gateway.admin, 'PATCH', `/admin/v1/users/${fallen.id}`, {
        token: at.gateway.adminToken,
        body: { plan: 'free' },
      })
      expect((await call(at.gateway.url, method, target, { token: fallen.access })).status).toBe(403)
    },
  )

  it.each(guarded)('%s %s is refused to nobody in particular', async (method, target) => {
    const error = 'Token invalide ou expiré'
    const bare = await call(at.gateway.url, method, target)
    expectRefusal(bare, 401, 'token_invalid', error)
    expect(bare.headers.get('www-authenticate')).toBe('Bearer')
    for (const token of ['x', user.refresh]) {
      const answer = await call(at.gateway.url, method, target, { token })
      expectRefusal(answer, 401, 'token_invalid', error)
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    }
    const key = await call(at.gateway.url, method, target, { headers: { 'x-api-key': 'peage_x' } })
    expectRefusal(key, 401, 'token_invalid', error)
    const gone = await newUser(at.gateway, 'pro')
    await at.gateway.sql('update users set is_active = 0 where id = $1', [gone.id])
    const answer = await call(at.gateway.url, method, target, { token: gone.access })
    expectRefusal(answer, 401, 'user_not_found', 'Utilisateur introuvable')
  })

  it.each([path, '/api/v1/user/webhook'])('%s knows POST and DELETE alone', async target => {
    for (const method of ['GET', 'PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
      const answer = await call(at.gateway.url, method, target, { token: user.access })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST, DELETE'])
      expect(answer.headers.get('x-peage-error')).toBe('method_not_allowed')
      if (method !== 'HEAD') expect(answer.body).toEqual({ error: 'Méthode non autorisée' })
    }
  })

  it.each(guarded)('%s %s with two credentials of one kind is 400', async (method, target) => {
    for (const field of [`Authorization: Bearer ${user.access}`, 'X-API-Key: peage_x']) {
      const request = `${method} ${target} HTTP/1.1\r\nHost: a\r\n${field}\r\n${field}\r\nContent-Length: 0\r\n\r\n`
      const answer = await ask(at.gateway.url, request)
      expect([answer?.status, JSON.parse(String(answer?.body))]).toEqual([
        400,
        { error: "En-têtes d'authentification ambigus" },
      ])
      expect(answer && value(answer, 'x-peage-error')).toBe('credentials_ambiguous')
      expect(answer && value(answer, 'cache-control')).toBe('no-store')
    }
  })

  describe('their paths', () => {
    it.each(['/API/v1/User/Api-Token', '/api/v1/user/api-token/', '//api/v1/user//api-token'])(
      'are matched as routes are: %s',
      async spelling => {
        const answer = await call(at.gateway.url, 'POST', spelling, { token: user.access })
        expect(answer.status).toBe(201)
      },
    )
  })
})
