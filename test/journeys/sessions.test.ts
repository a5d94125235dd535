// What users see and end of their own sessions (CONTRACT §12, "Sessions").
import { describe, expect, it } from 'vitest'
import { call, giveKey, newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { describeOverSetups } from '../support/setups.ts'

const password = 'un mot de passe'
const day = 86_400_000
let people = 0

describeOverSetups('sessions', setup => {
  const at = journey(setup)

  const ask = (method: string, path: string, token?: string, more: Parameters<typeof call>[3] = {}) =>
    call(at.gateway.url, method, `/api/v1/auth${path}`, {
      ...more,
      ...(token === undefined ? {} : { token }),
    })

  interface Pair {
    access: string
    refresh: string
  }

  const pairOf = (body: Record<string, unknown>): Pair => ({
    access: String(body.access_token),
    refresh: String(body.refresh_token),
  })

  async function register(): Promise<string> {
    people += 1
    const email = `session${people}@example.com`
    expect((await ask('POST', '/register', undefined, { body: { email, password } })).status).toBe(201)
    return email
  }

  const login = async (email: string, userAgent?: string): Promise<Pair> => {
    const headers: Record<string, string> = userAgent === undefined ? {} : { 'user-agent': userAgent }
    return pairOf((await ask('POST', '/login', undefined, { body: { email, password }, headers })).body)
  }
  const refresh = (token: string) => ask('POST', '/refresh', undefined, { body: { refresh_token: token } })
  const logout = (token: string) => ask('POST', '/logout', undefined, { body: { refresh_token: token } })
  const sessionsOf = async (token: string) =>
    (await ask('GET', '/sessions', token)).body.sessions as Record<string, unknown>[]
  const sidOf = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sid as string

  it('both tokens carry the id of their session, which stays through rotations', async () => {
    const pair = await login(await register())
    const sid = sidOf(pair.access)
    expect(sid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const next = pairOf((await refresh(pair.refresh)).body)
    expect([sidOf(pair.refresh), sidOf(next.access), sidOf(next.refresh)]).toEqual([sid, sid, sid])
  })

  it('are listed with the newest use first, and say which is the current one', async () => {
    const email = await register()
    const first = await login(email, `Agent\t ${'x'.repeat(300)}`)
    at.gateway.clock.at += 1_000
    const second = await login(email)
    at.gateway.clock.at += 1_000
    const rotated = pairOf((await refresh(first.refresh)).body)
    const listed = await sessionsOf(second.access)
    expect(listed.map(({ id, current }) => [id, current])).toEqual([
      [sidOf(rotated.access), false],
      [sidOf(second.access), true],
    ])
    expect(Object.keys(listed[0] ?? {}).sort()).toEqual([
      'created_at',
      'current',
      'expires_at',
      'id',
      'last_used_at',
      'user_agent',
    ])
    expect(String(listed[0]?.user_agent)).toHaveLength(200)
    expect(String(listed[0]?.user_agent)).toMatch(/^Agent x+$/)
  })

  it('one is ended by its id: its refresh token is refused, the others go on', async () => {
    const email = await register()
    const [mine, other] = [await login(email), await login(email)]
    const answer = await ask('DELETE', `/sessions/${sidOf(other.access)}`, mine.access)
    expect([answer.status, answer.body]).toEqual([200, { message: 'Session fermée' }])
    expect((await refresh(other.refresh)).body).toEqual({
      error: 'Refresh token invalide, révoqué ou expiré',
    })
    expect(await sessionsOf(mine.access)).toHaveLength(1)
    expect((await refresh(mine.refresh)).status).toBe(200)
  })

  it.each(['0f0e0d0c-0b0a-4908-8706-050403020100', 'nothing', '1'])(
    'ending one that is not there, or another user’s, changes nothing: %s',
    async id => {
      const [mine, other] = [await login(await register()), await login(await register())]
      for (const one of [id, sidOf(other.access)]) {
        expect((await ask('DELETE', `/sessions/${one}`, mine.access)).status).toBe(200)
      }
      expect((await refresh(other.refresh)).status).toBe(200)
    },
  )

  it('all but the current one are ended, or with `all` that one too', async () => {
    const email = await register()
    const pairs = [await login(email), await login(email), await login(email)]
    const [mine] = pairs as [Pair, Pair, Pair]
    const others = await ask('DELETE', '/sessions', mine.access, { body: { all: 'true' } })
    expect([others.status, others.body]).toEqual([200, { message: 'Sessions fermées', closed: 2 }])
    const statuses = []
    for (const { refresh: token } of pairs) statuses.push((await refresh(token)).status)
    expect(statuses).toEqual([200, 401, 401])
    const all = await ask('DELETE', '/sessions', mine.access, { body: { all: true } })
    expect(all.body).toEqual({ message: 'Sessions fermées', closed: 1 })
    // The access token is good for the routes until it expires, and for nothing here.
    expect((await call(at.gateway.url, 'GET', '/any/thing', { token: mine.access })).status).toBe(200)
    const refused = await ask('GET', '/sessions', mine.access)
    expect([refused.status, refused.body]).toEqual([401, { error: 'Token invalide ou expiré' }])
    expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  })

  it('an API key does not open them', async () => {
    const user = await newUser(at.gateway, 'pro')
    await giveKey(at.gateway, user, 'peage_a_key_for_sessions')
    const answer = await ask('GET', '/sessions', undefined, {
      headers: { 'x-api-key': 'peage_a_key_for_sessions' },
    })
    expect([answer.status, answer.body, answer.headers.get('x-peage-error')]).toEqual([
      403,
      { error: "Jeton d'accès requis" },
      'bearer_required',
    ])
    expect((await ask('GET', '/sessions')).status).toBe(401)
  })

  it('logout ends the session of a token that was exchanged already', async () => {
    const pair = await login(await register())
    const next = pairOf((await refresh(pair.refresh)).body)
    expect((await logout(pair.refresh)).status).toBe(200)
    expect((await refresh(next.refresh)).status).toBe(401)
  })

  it('tokens of 0.1 go on, in a session that is derived from their record', async () => {
    const email = await register()
    const pair = await login(email)
    await at.gateway.sql(
      'update refresh_tokens set session_id = null, session_created_at = null, user_agent = null where session_id = $1::uuid',
      [sidOf(pair.refresh)],
    )
    const [listed] = await sessionsOf((await login(email)).access).then(all =>
      all.filter(one => !one.current),
    )
    const next = pairOf((await refresh(pair.refresh)).body)
    // The presented token says another id here than its record: what it says stays with its session.
    expect(listed?.id).toMatch(/^[0-9a-f-]{36}$/)
    expect(sidOf(next.access)).toBe(sidOf(pair.access))
  })

  it('methods are those that are there, and paths below are none', async () => {
    const post = await ask('POST', '/sessions')
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE'])
    const get = await ask('GET', '/sessions/x')
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'DELETE'])
    expect((await ask('GET', '/sessions/x/y')).status).toBe(404)
  })
})

describe('session_max', () => {
  it('ends a session so long after its login, and no token of it lives longer', async () => {
    const gateway = await startGateway('routes: []\n', undefined, {
      auth: ', session_max: 40d',
    })
    try {
      const email = 'max@example.com'
      await call(gateway.url, 'POST', '/api/v1/auth/register', { body: { email, password } })
      const post = async (path: string, body: object) =>
        call(gateway.url, 'POST', `/api/v1/auth/${path}`, { body })
      const expOf = (token: unknown) =>
        JSON.parse(Buffer.from(String(token).split('.')[1] ?? '', 'base64url').toString()).exp * 1_000
      const start = gateway.clock.at
      const first = await post('login', { email, password })
      gateway.clock.at = start + 29 * day
      const second = await post('refresh', { refresh_token: first.body.refresh_token })
      expect(second.status).toBe(200)
      expect(Math.abs(expOf(second.body.refresh_token) - (start + 40 * day))).toBeLessThanOrEqual(1_000)
      gateway.clock.at = start + 40 * day - 60_000
      const third = await post('refresh', { refresh_token: second.body.refresh_token })
      expect(Math.abs(expOf(third.body.access_token) - (start + 40 * day))).toBeLessThanOrEqual(1_000)
      gateway.clock.at = start + 40 * day + 2_000
      expect((await post('refresh', { refresh_token: third.body.refresh_token })).body).toEqual({
        error: 'Refresh token invalide ou expiré',
      })
    } finally {
      await gateway.stop()
    }
  })
})
