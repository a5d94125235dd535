// With `auth.logout_ends_access`, the end of a session also ends its access tokens and open streams.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { StorageError } from '../../src/storage/database.ts'
import { call, giveKey, login, newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { codeTo, mailSection } from '../support/mailed.ts'
import { describeWithServices } from '../support/services.ts'
import { claimsOf, withoutSession } from '../support/sessions.ts'
import { describeOverSetups, services } from '../support/setups.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

const routes = (upstream: string) => `upstreams: { app: { targets: ['${upstream}'] } }
routes:
  - { path: /any, upstream: app, websocket: true }
  - { path: /maybe, upstream: app, auth: optional }
${mailSection()}`
const ends = { auth: ', logout_ends_access: true' }

const answer: NonNullable<WebSocketUpstream['answer']> = ({ url }, response) => {
  const isStream = url?.includes('stream') === true
  response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'text/plain' })
  if (isStream) response.write('data: 1\n\n')
  else response.end()
}

const ask = (gateway: TestGateway, token: string, more: { path?: string; key?: string } = {}) =>
  call(gateway.url, 'GET', more.path ?? '/any', {
    token,
    headers: more.key === undefined ? {} : { 'x-api-key': more.key },
  })
const auth = (gateway: TestGateway, method: string, path: string, body?: unknown, token?: string) =>
  call(gateway.url, method, `/api/v1/auth${path}`, { body, ...(token === undefined ? {} : { token }) })
const logout = (gateway: TestGateway, user: { refresh: string }) =>
  auth(gateway, 'POST', '/logout', { refresh_token: user.refresh })
const sidOf = (token: string) => String(claimsOf(token).sid)

describeOverSetups('logout_ends_access', setup => {
  const at = gatewayBefore(
    startWebSocketUpstream,
    routes,
    { auth: ', logout_ends_access: true, refresh_reuse: revoke_all, session_max: 1h, access_token_ttl: 2h' },
    setup,
  )
  beforeAll(() => {
    at.upstream.answer = answer
  })

  const refreshed = async (user: { refresh: string }) => {
    const { body } = await auth(at.gateway, 'POST', '/refresh', { refresh_token: user.refresh })
    return { access: String(body.access_token), refresh: String(body.refresh_token) }
  }

  it.each<[string, (user: TestUser) => Promise<unknown>]>([
    ['logout', user => logout(at.gateway, user)],
    [
      'logout with an exchanged refresh token',
      async user => {
        await refreshed(user)
        await logout(at.gateway, user)
      },
    ],
    [
      'its deletion',
      user => auth(at.gateway, 'DELETE', `/sessions/${sidOf(user.access)}`, undefined, user.access),
    ],
    ['the end of all sessions', user => auth(at.gateway, 'DELETE', '/sessions', { all: true }, user.access)],
    [
      'a password change',
      user =>
        auth(
          at.gateway,
          'POST',
          '/password',
          { current_password: user.password, new_password: 'another long password' },
          user.access,
        ),
    ],
    [
      'a password reset',
      async user => {
        await auth(at.gateway, 'POST', '/password/forgot', { email: user.email })
        const { token } = await codeTo(at.gateway, user.email)
        await auth(at.gateway, 'POST', '/password/reset', { token, new_password: 'another long password' })
      },
    ],
    [
      'an email change by link',
      async user => {
        const email = `next.${user.email}`
        const change = { email, current_password: user.password }
        await auth(at.gateway, 'POST', '/email', change, user.access)
        await auth(at.gateway, 'POST', '/email/confirm', { token: (await codeTo(at.gateway, email)).token })
      },
    ],
    [
      'an operator',
      user =>
        call(at.gateway.admin, 'DELETE', `/admin/v1/users/${user.id}/sessions`, {
          token: at.gateway.adminToken,
        }),
    ],
    [
      'the reuse of an exchanged refresh token',
      async user => {
        await refreshed(user)
        at.gateway.clock.at += 60_000
        await auth(at.gateway, 'POST', '/refresh', { refresh_token: user.refresh })
      },
    ],
    [
      'its maximum age',
      async () => {
        at.gateway.clock.at += 3_600_000
      },
    ],
  ])('refuses an access token right after its session was ended by %s', async (_, end) => {
    const user = await newUser(at.gateway)
    expect((await ask(at.gateway, user.access)).status).toBe(200)
    await end(user)
    const { status, body, headers } = await ask(at.gateway, user.access)
    expect([status, body]).toEqual([401, { error: 'Token invalide ou expiré' }])
    expect(headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    expect((await ask(at.gateway, user.access, { path: '/maybe' })).status).toBe(401)
  })

  it('does not affect other sessions of the user, or sessions that the user opens later', async () => {
    const user = await newUser(at.gateway)
    const other = await login(at.gateway.url, user.email, user.password)
    await ask(at.gateway, other.access)
    await logout(at.gateway, user)
    expect((await ask(at.gateway, other.access)).status).toBe(200)
    const next = await login(at.gateway.url, user.email, user.password)
    expect((await ask(at.gateway, next.access)).status).toBe(200)
  })

  it('accepts a valid API key that is sent with a token of an ended session, but first checks the user of the token', async () => {
    const user = await newUser(at.gateway, 'pro')
    await giveKey(at.gateway, user, `peage_ends${user.id}`)
    await logout(at.gateway, user)
    expect((await ask(at.gateway, user.access, { key: `peage_ends${user.id}` })).status).toBe(200)
    expect((await ask(at.gateway, user.access, { key: 'peage_unknown' })).status).toBe(401)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const answered = () => ask(at.gateway, user.access, { key: 'peage_unknown' })
    await expect.poll(async () => (await answered()).headers.get('x-peage-error')).toBe('user_not_found')
  })

  it('still accepts access tokens of version 0.1, which belong to no session', async () => {
    const user = await newUser(at.gateway)
    const token = await withoutSession(at.gateway, user.access)
    await logout(at.gateway, user)
    expect((await ask(at.gateway, token)).status).toBe(200)
    expect((await ask(at.gateway, user.access)).status).toBe(401)
  })

  it('takes effect at once, even if the database cannot store the logout yet', async () => {
    const user = await newUser(at.gateway)
    expect((await ask(at.gateway, user.access)).status).toBe(200)
    const { database } = at.gateway.backing
    const { transaction } = database
    database.transaction = () => Promise.reject(new StorageError('away', undefined, undefined))
    expect((await logout(at.gateway, user)).status).toBe(200)
    expect((await ask(at.gateway, user.access)).status).toBe(401)
    database.transaction = transaction
    const stored = () =>
      at.gateway.sql('select from refresh_tokens where user_id = $1 and revoked = 1', [user.id])
    await expect.poll(async () => (await stored()).length, { timeout: 3_000 }).toBe(1)
    expect((await ask(at.gateway, user.access)).status).toBe(401)
  })

  it('closes the open streams of an ended session at once (WebSockets with code 1008), and no other streams', async () => {
    const user = await newUser(at.gateway)
    const other = await login(at.gateway.url, user.email, user.password)
    const kept = await openWebSocket(`${at.gateway.url}/any`, { token: other.access })
    const ended = await openWebSocket(`${at.gateway.url}/any`, { token: user.access })
    const events = await fetch(`${at.gateway.url}/any?stream`, {
      headers: { authorization: `Bearer ${user.access}` },
    })
    await logout(at.gateway, user)
    const answeredAt = performance.now()
    const { code, at: closedAt } = await ended.closed
    expect([code, closedAt - answeredAt < 300]).toEqual([1008, true])
    expect(await events.text()).toBe('data: 1\n\n')
    kept.socket.send('there?')
    expect(await kept.next()).toBe('there?')
    kept.socket.terminate()
  })
})

describeWithServices('logout_ends_access on two replicas', () => {
  let stores: Stores
  let upstream: WebSocketUpstream
  let replicas: [TestGateway, TestGateway]
  beforeAll(async () => {
    stores = await services.open()
    upstream = await startWebSocketUpstream()
    upstream.answer = answer
    replicas = await Promise.all([
      startGateway(routes(upstream.url), stores, ends),
      startGateway(routes(upstream.url), stores, ends),
    ])
  })
  afterAll(async () => {
    await Promise.all((replicas ?? []).map(replica => replica.stop()))
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
  })

  it('takes effect on the other replica within 50 ms for tokens, and within 1 s for open streams', async () => {
    const [first, second] = replicas
    for (let turn = 0; turn < 20; turn += 1) {
      const user = await newUser(first)
      expect((await ask(second, user.access)).status).toBe(200)
      const stream = await openWebSocket(`${second.url}/any`, { token: user.access })
      await logout(first, user)
      const answered = performance.now()
      await sleep(50)
      expect((await ask(second, user.access)).status).toBe(401)
      expect((await stream.closed).at - answered).toBeLessThan(1_000)
    }
  })

  it('takes effect on both replicas if another program ends the session in the database', async () => {
    for (const sql of [
      'update refresh_tokens set revoked = 1 where user_id = $1',
      'update users set session_epoch = session_epoch + 1 where id = $1',
      'delete from refresh_tokens where user_id = $1',
    ]) {
      const user = await newUser(replicas[0])
      for (const replica of replicas) expect((await ask(replica, user.access)).status).toBe(200)
      await replicas[0].sql(sql, [user.id])
      await sleep(50)
      for (const replica of replicas) expect((await ask(replica, user.access)).status).toBe(401)
    }
  })

  it('takes effect on a replica that starts after the session has ended', async () => {
    const user = await newUser(replicas[0])
    await logout(replicas[0], user)
    const late = await startGateway(routes(upstream.url), stores, ends)
    expect((await ask(late, user.access)).status).toBe(401)
    await late.stop()
  })
})
