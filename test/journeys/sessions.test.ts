// Users list and end their own sessions.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, login, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { claimsOf, pairOf01 } from '../support/sessions.ts'
import { describeOverSetups } from '../support/setups.ts'

const day = 86_400_000

describeOverSetups('sessions', setup => {
  const at = journey(setup)

  const ask = (method: string, path: string, token?: string, more: Parameters<typeof call>[3] = {}) =>
    call(at.gateway.url, method, `/api/v1/auth${path}`, {
      ...more,
      ...(token === undefined ? {} : { token }),
    })

  const pairOf = (body: Record<string, unknown>) => ({
    access: String(body.access_token),
    refresh: String(body.refresh_token),
  })
  /** Opens another session of the user. @returns the tokens of the new session */
  const signIn = ({ email, password }: TestUser) => login(at.gateway.url, email, password)
  const refresh = (token: string) => ask('POST', '/refresh', undefined, { body: { refresh_token: token } })
  const sessionsOf = async (token: string) =>
    (await ask('GET', '/sessions', token)).body.sessions as Record<string, unknown>[]
  const sidOf = (token: string) => String(claimsOf(token).sid)

  it('have an ID that is in both tokens and stays the same after a refresh', async () => {
    const pair = await newUser(at.gateway)
    const sid = sidOf(pair.access)
    expect(sid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    const next = pairOf((await refresh(pair.refresh)).body)
    expect([sidOf(pair.refresh), sidOf(next.access), sidOf(next.refresh)]).toEqual([sid, sid, sid])
  })

  it('are listed by last use, newest first, and the current session is marked', async () => {
    const user = await newUser(at.gateway)
    await ask('DELETE', '/sessions', user.access, { body: { all: true } })
    const began = at.gateway.clock.at
    const headers = { 'user-agent': `Agent\t ${'x'.repeat(300)}` }
    const first = pairOf((await ask('POST', '/login', undefined, { body: user, headers })).body)
    at.gateway.clock.at += 1_000
    const second = await signIn(user)
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
    const [signedIn, used] = [began, began + 2_000].map(ms => new Date(ms).toISOString())
    expect(listed[0]).toMatchObject({ created_at: signedIn, last_used_at: used })
    const expires = Date.parse(String(listed[0]?.expires_at))
    expect(Math.abs(expires - (began + 2_000 + 30 * day))).toBeLessThanOrEqual(1_000)
    expect(String(listed[0]?.user_agent)).toHaveLength(200)
    expect(String(listed[0]?.user_agent)).toMatch(/^Agent x+$/)
  })

  it('are listed up to a maximum of 100, and the list includes the current session', async () => {
    const pair = await newUser(at.gateway)
    await at.gateway.sql(
      `insert into refresh_tokens (user_id, session_epoch, token_hash, expires_at, session_id, created_at)
       select user_id, session_epoch, token_hash || n, expires_at, gen_random_uuid(),
              created_at + (case when n <= 99 then n else -n end) * interval '1 s'
         from refresh_tokens, generate_series(1, 120) as n where session_id = $1::uuid`,
      [sidOf(pair.access)],
    )
    const listed = await sessionsOf(pair.access)
    const times = listed.map(one => Date.parse(String(one.last_used_at)))
    expect(times).toHaveLength(100)
    expect(times).toEqual(times.toSorted((a, b) => b - a))
    expect(listed.at(-1)).toMatchObject({ id: sidOf(pair.access), current: true })
  })

  it('store no client address', async () => {
    const { access } = await newUser(at.gateway)
    const rows = await at.gateway.sql<{ text: string }>(
      'select to_jsonb(t)::text as text from refresh_tokens t where session_id = $1::uuid',
      [sidOf(access)],
    )
    expect(rows).toHaveLength(1)
    expect(rows[0]?.text).not.toMatch(/127\.0\.0|::1|::ffff/)
  })

  it('can be ended by ID; the refresh token is then refused and other sessions continue', async () => {
    const mine = await newUser(at.gateway)
    const other = await signIn(mine)
    const answer = await ask('DELETE', `/sessions/${sidOf(other.access)}`, mine.access)
    expect([answer.status, answer.body]).toEqual([200, { message: 'Session fermée' }])
    expect((await refresh(other.refresh)).body).toEqual({
      error: 'Refresh token invalide, révoqué ou expiré',
    })
    expect(await sessionsOf(mine.access)).toHaveLength(1)
    expect((await refresh(mine.refresh)).status).toBe(200)
  })

  it.each(['0f0e0d0c-0b0a-4908-8706-050403020100', 'nothing'])(
    'stay open if a user tries to delete the session of another user or the unknown session %s',
    async id => {
      const [mine, other] = [await newUser(at.gateway), await newUser(at.gateway)]
      for (const one of [id, sidOf(other.access)])
        expect((await ask('DELETE', `/sessions/${one}`, mine.access)).status).toBe(200)
      expect((await refresh(other.refresh)).status).toBe(200)
    },
  )

  it('can all be ended at once, except the current one; with `all`, the current one ends too', async () => {
    const mine = await newUser(at.gateway)
    const pairs = [mine, await signIn(mine), await signIn(mine)]
    const others = await ask('DELETE', '/sessions', mine.access, { body: { all: 'true' } })
    expect([others.status, others.body]).toEqual([200, { message: 'Sessions fermées', closed: 2 }])
    const statuses = []
    for (const { refresh: token } of pairs) statuses.push((await refresh(token)).status)
    expect(statuses).toEqual([200, 401, 401])
    const all = await ask('DELETE', '/sessions', mine.access, { body: { all: true } })
    expect(all.body).toEqual({ message: 'Sessions fermées', closed: 1 })
    // When all sessions end, `session_epoch` increases. This invalidates logins that are still in progress. It also
    // makes replicas of version 0.1 refuse the tokens of the ended sessions.
    const [{ session_epoch: epoch } = { session_epoch: 0 }] = await at.gateway.sql<{ session_epoch: number }>(
      'select session_epoch from users where id = $1',
      [mine.id],
    )
    expect(epoch).toBe(1)
    // Until the access token expires, routes accept it, but the endpoints for sessions refuse it.
    expect((await call(at.gateway.url, 'GET', '/any/thing', { token: mine.access })).status).toBe(200)
    const refused = await ask('GET', '/sessions', mine.access)
    expect([refused.status, refused.body]).toEqual([401, { error: 'Token invalide ou expiré' }])
    expect(refused.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
  })

  it('continue if version 0.1 opened them, with an ID derived from their database record', async () => {
    const old = await pairOf01(at.gateway, await newUser(at.gateway))
    const [listed] = await sessionsOf(old.access)
    expect(listed?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect((await sessionsOf(old.access))[0]?.id).toBe(listed?.id)
    const next = pairOf((await refresh(old.refresh)).body)
    expect([sidOf(next.access), sidOf(next.refresh)]).toEqual([listed?.id, listed?.id])
    expect(await sessionsOf(next.access)).toMatchObject([{ id: listed?.id, current: true }])
    // When version 0.1 refreshes a session, it creates a new record. The new record counts as another session.
    const again = await pairOf01(at.gateway, next)
    expect((await sessionsOf(again.access))[0]?.id).not.toBe(listed?.id)
  })

  it('can all be ended with an access token of version 0.1, because such a token marks no session as the current one', async () => {
    const user = await newUser(at.gateway)
    const other = await signIn(user)
    const old = await pairOf01(at.gateway, user)
    expect((await sessionsOf(old.access)).map(({ current }) => current)).toEqual([false, false])
    expect((await ask('DELETE', '/sessions', old.access)).body.closed).toBe(2)
    for (const { refresh: token } of [old, other]) expect((await refresh(token)).status).toBe(401)
  })

  it('have endpoints that return 405 for undeclared methods, and 404 for deeper paths', async () => {
    const post = await ask('POST', '/sessions')
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, DELETE'])
    const get = await ask('GET', '/sessions/x')
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'DELETE'])
    expect((await ask('GET', '/sessions/x/y')).status).toBe(404)
  })
})

describe('session_max', () => {
  let gateway: TestGateway
  beforeAll(async () => {
    gateway = await startGateway('routes: []\n', undefined, { auth: ', session_max: 40d' })
  })
  afterAll(() => gateway?.stop())

  const post = async (path: string, body: object) =>
    call(gateway.url, 'POST', `/api/v1/auth/${path}`, { body })
  const refresh = (token: unknown) => post('refresh', { refresh_token: token })
  /**
   * Returns the milliseconds from `at` to the expiry of a token. The result may be negative, because tokens expire at
   * whole seconds.
   */
  const outlives = (token: unknown, at: number) => Number(claimsOf(String(token)).exp) * 1_000 - at
  const expectEnd = (token: unknown, at: number) => {
    expect(outlives(token, at)).toBeLessThanOrEqual(0)
    expect(outlives(token, at)).toBeGreaterThan(-1_000)
  }

  it('ends a session at this age, and no token of the session expires later', async () => {
    // The session starts 500 ms after a full second. The refresh below happens 200 ms after a full second. With these
    // times, the test covers the rounding to full seconds.
    gateway.clock.at = Math.floor(gateway.clock.at / 1_000) * 1_000 + 500
    const first = await newUser(gateway)
    const start = gateway.clock.at
    gateway.clock.at = start + 29 * day - 300
    const second = await refresh(first.refresh)
    expect(second.status).toBe(200)
    expectEnd(second.body.refresh_token, start + 40 * day)
    gateway.clock.at = start + 40 * day - 60_000
    const third = await refresh(second.body.refresh_token)
    expectEnd(third.body.access_token, start + 40 * day)
    gateway.clock.at = start + 40 * day + 2_000
    expect((await refresh(third.body.refresh_token)).body).toEqual({
      error: 'Refresh token invalide ou expiré',
    })
  })

  it('counts from the creation of the database record if version 0.1 opened the session', async () => {
    const old = await pairOf01(gateway, await newUser(gateway))
    const begun = gateway.clock.at - 39 * day
    await gateway.sql('update refresh_tokens set created_at = $1 where session_id is null and revoked = 0', [
      new Date(begun),
    ])
    const next = await refresh(old.refresh)
    expectEnd(next.body.refresh_token, begun + 40 * day)
    gateway.clock.at += 2 * day
    expect((await refresh(next.body.refresh_token)).status).toBe(401)
  })

  it('if it becomes shorter, ends older sessions, even if their tokens have not expired', async () => {
    const user = await newUser(gateway)
    await gateway.configure(['session_max: 40d', 'session_max: 1h'])
    gateway.clock.at += 3_600_000
    const refused = await refresh(user.refresh)
    expect(refused.headers.get('x-peage-error')).toBe('refresh_token_inactive')
  })
})
