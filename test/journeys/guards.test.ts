// Guards check real requests in a fixed order, and count daily uses.
import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const day = 86_400_000
const invalidToken = 'Bearer error="invalid_token"'

describeOverSetups('guards', setup => {
  const at = journey(setup)
  const get = (path: string, token?: string, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'GET', path, { headers, ...(token === undefined ? {} : { token }) })

  async function newKey(id: number): Promise<string> {
    const key = `peage_${randomBytes(18).toString('hex')}`
    await giveKey(at.gateway, { id }, key)
    return key
  }

  const usage = async (id: number) => {
    const [row] = await at.gateway.sql<{ daily_usage: number; last_usage_date: string }>(
      'select daily_usage, last_usage_date from users where id = $1',
      [id],
    )
    return [row?.daily_usage, row?.last_usage_date]
  }
  const today = () => new Date(at.gateway.clock.at).toISOString().slice(0, 10)

  it('a valid bearer token is accepted, and the upstream receives the user ID and plan', async () => {
    const user = await newUser(at.gateway, 'premium')
    expect((await get('/any/x?q=1', user.access)).status).toBe(200)
    expect(at.upstream.received[0]?.headers).toMatchObject({
      'x-user-id': String(user.id),
      'x-user-plan': 'premium',
    })
    expect(at.upstream.received[0]?.headers.authorization).toBeUndefined()
  })

  it('a missing or invalid credential returns 401 with the matching challenge', async () => {
    const error = 'Token invalide ou expiré'
    for (const [token, headers, challenge] of [
      [undefined, {}, 'Bearer'],
      ['x.y.z', {}, invalidToken],
      [undefined, { 'x-api-key': 'peage_unknown' }, 'Bearer'],
      [undefined, { 'x-api-key': '  ' }, 'Bearer'],
      [undefined, { authorization: 'Basic eDp5' }, invalidToken],
    ] as const) {
      const answer = await get('/any/x', token, headers)
      expect([answer.status, answer.body]).toEqual([401, { error }])
      expect(answer.headers.get('www-authenticate')).toBe(challenge)
      expect(answer.headers.get('x-peage-error')).toBe('token_invalid')
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
    expect(at.upstream.received).toEqual([])
  })

  it('if the user of a valid token is inactive, the response is "Utilisateur introuvable", even with a valid API key of another user', async () => {
    const user = await newUser(at.gateway)
    const key = await newKey((await newUser(at.gateway)).id)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const answer = await get('/any/x', user.access, { 'x-api-key': key })
    expect([answer.status, answer.body]).toEqual([401, { error: 'Utilisateur introuvable' }])
  })

  it('if the token is invalid, the API key is trimmed and used; its use is recorded within 1 s', async () => {
    const user = await newUser(at.gateway)
    const key = await newKey(user.id)
    expect((await get('/any/x', 'bad', { 'x-api-key': ` ${key}\t` })).status).toBe(200)
    expect(at.upstream.received[0]?.headers['x-user-id']).toBe(String(user.id))
    expect(at.upstream.received[0]?.headers['x-api-key']).toBeUndefined()
    await expect
      .poll(() => at.gateway.sql('select last_used_at from api_tokens where user_id = $1', [user.id]), {
        timeout: 1_000,
      })
      .toEqual([{ last_used_at: new Date(at.gateway.clock.at) }])
  })

  it('the refusal of the plan guard contains the required plans and the current plan', async () => {
    const user = await newUser(at.gateway)
    const answer = await get('/paid', user.access)
    expect(answer.status).toBe(403)
    expect(answer.text).toBe(
      '{"error":"Plan insuffisant","required":["premium","pro"],"current_plan":"free","upgrade_url":"/api/v1/subscription/upgrade"}',
    )
    expect(answer.headers.get('x-peage-error')).toBe('plan_insufficient')
  })

  it('a free user has one use per UTC day, and then gets 429 with the seconds until midnight', async () => {
    const user = await newUser(at.gateway)
    const start = at.gateway.clock.at
    at.gateway.clock.at = Math.floor(start / day) * day + day - 90_500
    const { access } = await relogin(user.email)
    expect((await get('/courses/1', access)).status).toBe(200)
    expect(await usage(user.id)).toEqual([1, today()])
    const refused = await get('/courses/1', access)
    expect([refused.status, refused.text]).toEqual([
      429,
      '{"error":"Limite quotidienne atteinte (plan free: 1 course/jour)","upgrade_url":"/api/v1/subscription/upgrade"}',
    ])
    expect(refused.headers.get('retry-after')).toBe('91')
    expect(at.upstream.received).toHaveLength(1)

    at.gateway.clock.at += 91_000
    expect((await get('/courses/1', access)).status).toBe(200)
    expect(await usage(user.id)).toEqual([1, today()])
    at.gateway.clock.at = start
  })

  const relogin = async (email: string) => {
    const { body } = await call(at.gateway.url, 'POST', '/api/v1/auth/login', {
      body: { email, password: 'correct horse battery' },
    })
    return { access: String(body.access_token) }
  }

  it('requests of premium and pro users are not counted', async () => {
    for (const plan of ['premium', 'pro'] as const) {
      const user = await newUser(at.gateway, plan)
      for (let i = 0; i < 3; i++) expect((await get('/courses/1', user.access)).status).toBe(200)
      expect(await usage(user.id)).toEqual([0, null])
    }
  })

  it('a request that is refused before the daily guard is not counted as a use', async () => {
    const user = await newUser(at.gateway)
    expect((await get('/courses/%5c', user.access)).status).toBe(400)
    expect((await get('/paid', user.access)).status).toBe(403)
    expect((await get('/courses/1', 'bad')).status).toBe(401)
    expect(await usage(user.id)).toEqual([0, null])
  })

  it('a HEAD request counts as a daily use, and a request that ends with 502 stays counted', async () => {
    const user = await newUser(at.gateway)
    expect((await call(at.gateway.url, 'HEAD', '/courses/1', { token: user.access })).status).toBe(200)
    expect((await get('/courses/1', user.access)).status).toBe(429)
    const other = await newUser(at.gateway)
    expect((await get('/down-counted', other.access)).status).toBe(502)
    expect(await usage(other.id)).toEqual([1, today()])
  })

  it('auth: optional admits anonymous requests, but refuses an invalid credential', async () => {
    expect((await get('/optional')).status).toBe(200)
    expect(at.upstream.received[0]?.headers['x-user-id']).toBeUndefined()
    const user = await newUser(at.gateway)
    expect((await get('/optional', user.access)).status).toBe(200)
    expect(at.upstream.received[1]?.headers['x-user-id']).toBe(String(user.id))
    expect((await get('/optional', 'expired')).body.error).toBe('Token invalide ou expiré')
    expect((await get('/optional', undefined, { 'x-api-key': 'nope' })).status).toBe(401)
  })

  it('an anonymous request gets "Non authentifié" from a plan guard and is not counted by a daily guard', async () => {
    const answer = await get('/optional-pro')
    expect([answer.status, answer.body]).toEqual([401, { error: 'Non authentifié' }])
    expect(answer.headers.get('www-authenticate')).toBe('Bearer')
    expect((await get('/optional-counted')).status).toBe(200)
    expect((await get('/optional-counted')).status).toBe(200)
  })

  it('auth: none ignores credentials', async () => {
    expect((await get('/public/x', 'rubbish', { 'x-api-key': 'rubbish' })).status).toBe(200)
    expect(at.upstream.received[0]?.headers).toMatchObject({
      authorization: 'Bearer rubbish',
      'x-api-key': 'rubbish',
    })
  })
})
