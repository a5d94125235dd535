// Operators can do over HTTP what `peage users` does.
import { expect, it } from 'vitest'
import { createAdminEndpoints } from '../../src/admin/api/serve-api.ts'
import { call, newUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const tokens = {
  all: 'a-token-for-operators-0123456789',
  read: 'a-token-of-an-auditor',
  billing: 'a-token-of-billing',
}
const admin = `, token: ${tokens.all}, tokens: { r: { token: ${tokens.read}, may: read }, b: { token: ${tokens.billing}, may: billing } }`
const password = 'correct horse battery'
let made = 0

describeOverSetups('operators', setup => {
  const at = journey(setup, { admin })
  const ask = (method: string, path: string, body?: unknown, token = tokens.all) =>
    call(at.gateway.admin, method, `/admin/v1${path}`, { body, token })
  const login = (email: string, secret = password) =>
    call(at.gateway.url, 'POST', '/api/v1/auth/login', { body: { email, password: secret } })
  const create = async (more: object = {}) => {
    made += 1
    const { body } = await ask('POST', '/users', { email: `made${made}@example.com`, password, ...more })
    return body as { id: number; email: string }
  }

  it('create users; a user without a password cannot sign in', async () => {
    const answer = await ask('POST', '/users', {
      email: ' New@Example.com',
      password,
      plan: 'pro',
      email_verified: true,
    })
    expect(answer.status).toBe(201)
    expect(answer.body).toMatchObject({ email: 'new@example.com', plan: 'pro', is_active: 1 })
    expect(answer.body.email_verified_at).not.toBeNull()
    expect((await login('new@example.com')).status).toBe(200)
    const taken = await ask('POST', '/users', { email: 'NEW@example.com' })
    expectRefusal(taken, 409, 'email_taken', 'Email déjà enregistré')
    const { body } = await ask('POST', '/users', { email: 'without@example.com' })
    expect(body).toMatchObject({ plan: 'free', email_verified_at: null })
    for (const guess of ['!', '', password])
      expect((await login('without@example.com', guess)).status).not.toBe(200)
    expect((await ask('POST', `/users/${body.id}/password`, { password })).status).toBe(204)
    expect((await login('without@example.com')).status).toBe(200)
  })

  it('end the sessions and the email verification of a user if they change the email, but not if the email stays the same', async () => {
    const { id } = await create({ email_verified: true })
    const email = `other${id}@example.com`
    expect((await ask('PATCH', `/users/${id}`, { email: email.toUpperCase() })).body).toMatchObject({
      email,
      email_verified_at: null,
    })
    const session = (await login(email)).body
    const verified = await ask('PATCH', `/users/${id}`, { email, email_verified: true })
    expect(verified.body.email_verified_at).not.toBeNull()
    expect((await ask('PATCH', `/users/${id}`, { email })).body).toEqual(verified.body)
    const refresh = (refresh_token: unknown) =>
      call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })
    const next = await refresh(session.refresh_token)
    expect(next.status).toBe(200)
    const moved = await ask('PATCH', `/users/${id}`, {
      email: `third${id}@example.com`,
      email_verified: true,
    })
    expect(moved.body.email_verified_at).not.toBeNull()
    expect((await refresh(next.body.refresh_token)).status).toBe(401)
    const other = await create()
    const taken = await ask('PATCH', `/users/${id}`, { email: other.email, plan: 'pro' })
    expectRefusal(taken, 409, 'email_taken', 'Email déjà enregistré')
    expect((await ask('GET', `/users/${id}`)).body).toMatchObject({
      email: `third${id}@example.com`,
      plan: 'free',
    })
  })

  it('set a password, which ends all sessions of the user, and delete a user, whose email can then be used again', async () => {
    const { id, email } = await create()
    const { refresh_token } = (await login(email)).body
    expect((await ask('POST', `/users/${id}/password`, { password: 'another horse battery' })).status).toBe(
      204,
    )
    const refreshed = await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', { body: { refresh_token } })
    expect(refreshed.status).toBe(401)
    expect((await login(email)).status).toBe(401)
    expect((await login(email, 'another horse battery')).status).toBe(200)
    expect((await ask('DELETE', `/users/${id}`)).status).toBe(204)
    expect((await ask('DELETE', `/users/${id}`)).status).toBe(404)
    expect((await ask('POST', '/users', { email })).status).toBe(201)
  })

  it('see and remove the sessions, the API key and the webhook of a user, as far as the role of the operator allows', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { body: key } = await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access })
    await at.gateway.sql(
      "insert into webhooks (user_id, url, receiver, secret) values ($1, 'https://hooks.example/a?key=1', 'hooks.example:443', 'x')",
      [user.id],
    )
    const { body } = await ask('GET', `/users/${user.id}`)
    expect(body).toMatchObject({
      id: user.id,
      subscription: { plan: 'free' },
      sessions: [{ id: expect.any(String) }],
      api_token: { created_at: expect.any(String) },
      webhook: { url: 'https://hooks.example/a?key=1' },
    })
    expect(JSON.stringify(body)).not.toContain('argon2')
    const read = (await ask('GET', `/users/${user.id}`, undefined, tokens.read)).body
    expect(read).toEqual({ ...body, webhook: { ...(body.webhook as object), url: 'https://hooks.example' } })
    const exported = await ask('GET', `/users/${user.id}/export`)
    expect(exported.headers.get('content-disposition')).toBe('attachment')
    expect(exported.body).toMatchObject({
      user: { id: user.id },
      webhook: { url: 'https://hooks.example/a?key=1' },
    })
    const { sessions, api_token, api_keys, identities, webhook, ...rest } = body
    expect((await ask('GET', `/users/${user.id}`, undefined, tokens.billing)).body).toEqual(rest)

    const [{ id: session } = { id: '' }] = sessions as { id: string }[]
    for (const path of [`sessions/${session}`, `sessions/${session}`, 'sessions/x', 'api-token', 'api-token'])
      expect([path, (await ask('DELETE', `/users/${user.id}/${path}`)).status]).toEqual([path, 204])
    for (let i = 0; i < 2; i += 1) expect((await ask('DELETE', `/users/${user.id}/webhook`)).status).toBe(204)
    expect((await ask('GET', `/users/${user.id}`)).body).toMatchObject({
      sessions: [],
      api_token: null,
      webhook: null,
    })
    const used = await call(at.gateway.url, 'GET', '/any/x', {
      headers: { 'x-api-key': String(key.api_token) },
    })
    expect(used.status).toBe(401)
  })

  it('see the 100 newest sessions in the record of a user, and all sessions in the session list', async () => {
    const { id } = await create()
    await at.gateway.sql(
      `insert into refresh_tokens (user_id, token_hash, expires_at, session_id, session_created_at)
       select $1::bigint, 'many ' || n, now() + interval '99 years', gen_random_uuid(),
              timestamptz '2026-01-01' + n * interval '1 minute'
         from generate_series(1, 120) n`,
      [id],
    )
    const idsOf = async (path: string) =>
      ((await ask('GET', path)).body.sessions as { id: string }[]).map(session => session.id)
    const all = await idsOf(`/users/${id}/sessions`)
    expect(all).toHaveLength(120)
    expect(await idsOf(`/users/${id}`)).toEqual(all.slice(-100))
  })

  it('find a user by email in any Unicode form and letter case, with an encoded or unencoded plus sign', async () => {
    const { id } = await create({ email: 'ada+ne\u0301ws@example.com' })
    for (const email of ['ada+n%C3%A9ws', 'ada%2Bne%CC%81ws', 'ADA+NE%CC%81WS']) {
      for (const name of ['email', 'q']) {
        const { body } = await ask('GET', `/users?${name}=${email}@example.com`)
        expect(body.users).toMatchObject([{ id, email: 'ada+n\u00e9ws@example.com' }])
      }
    }
    const spaced = await ask('GET', '/users?email=ada%20news@example.com')
    expectRefusal(spaced, 400, 'request_invalid', { error: 'Requête invalide', field: 'email' })
    const { body } = await ask('GET', '/users?q=ada%20news')
    expect(body.users).toEqual([])
    for (const email of ['ad%E2%80%8Ba@example.com', '%00@example.com']) {
      expectRefusal(await ask('GET', `/users?email=${email}`), 400, 'email_invalid', 'Email invalide')
    }
    const hidden = await ask('POST', '/users', { email: 'ad\u200ba@example.com' })
    expectRefusal(hidden, 400, 'email_invalid', 'Email invalide')
    const patched = await ask('PATCH', `/users/${id}`, { email: 'ad\u200ba@example.com' })
    expectRefusal(patched, 400, 'email_invalid', 'Email invalide')
  })

  it('receive 400 for an unknown parameter at every endpoint, and nothing changes', async () => {
    const { id, email } = await create()
    for (const { operation } of createAdminEndpoints({} as never)) {
      const path = operation.path.replace('/admin/v1', '').replace(/:\w+/g, String(id))
      for (const name of ['limti', '__proto__', 'constructor']) {
        const answer = await ask(operation.method, `${path}?${name}=1`)
        expectRefusal(answer, 400, 'request_invalid', { error: 'Requête invalide', field: name })
      }
    }
    const many = Array.from({ length: 1_500 }, () => 'q').join('&')
    expect((await ask('GET', `/users?${many}&x=1`)).body.field).toBe('x')
    expect((await login(email)).status).toBe(200)
    const read = await ask('GET', '/users/1/export?x=1', undefined, tokens.read)
    expectRefusal(read, 403, 'admin_forbidden', 'Droits insuffisants')
  })

  it('list users by page with filters; a cursor is valid only for its own query', async () => {
    const { id } = await create({ email: 'zoe.1@example.com' })
    for (const n of [2, 3, 4]) await create({ email: `zoe.${n}@example.com`, plan: 'pro' })
    const emails = async (query: string) => {
      const { body } = await ask('GET', `/users?${query}`)
      return [(body.users as { email: string }[]).map(({ email }) => email), body.next_cursor] as const
    }
    expect((await emails('q=ZOE.'))[0]).toHaveLength(4)
    expect(await emails('q=zoe.&plan=free')).toEqual([['zoe.1@example.com'], null])
    for (const no of [0, false]) expect(await emails(`q=zoe.&is_active=${no}`)).toEqual([[], null])
    for (const yes of [1, true]) expect((await emails(`q=zoe.&is_active=${yes}`))[0]).toHaveLength(4)
    expect((await emails(`q=${id}`))[0]).toContain('zoe.1@example.com')
    const [first, cursor] = await emails('q=zoe.&limit=2')
    expect(first).toEqual(['zoe.1@example.com', 'zoe.2@example.com'])
    const [second, end] = await emails(`q=zoe.&limit=200&cursor=${cursor}`)
    expect([second, end]).toEqual([['zoe.3@example.com', 'zoe.4@example.com'], null])
    expect(await emails('q=%00')).toEqual([[], null])
    for (const query of [
      `q=zo&cursor=${cursor}`,
      `cursor=${cursor}`,
      'limit=0',
      'limit=201',
      'limit=1e1',
      'is_active=2',
      'q=a&q=b',
      'cursor=W10',
    ])
      expect([query, (await ask('GET', `/users?${query}`)).status]).toEqual([query, 400])
  })

  it('see no email change in the audit log if the new email is the current one', async () => {
    const { id, email } = await create()
    for (const patch of [{ email: email.toUpperCase() }, { email, plan: 'pro' }, { email: `n${email}` }])
      expect((await ask('PATCH', `/users/${id}`, patch)).status).toBe(200)
    const { body } = await ask('GET', `/audit?user_id=${id}`)
    const entries = body.entries as { changes: object; previous: object | null }[]
    expect(entries.slice(0, 3).map(({ changes, previous }) => [changes, previous])).toEqual([
      [{ email: 'set' }, null],
      [{ plan: 'pro' }, { plan: 'free' }],
      [{}, null],
    ])
  })
})
