// Each change by an operator is stored together with an audit entry, which contains the name of the operator’s token.
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { type Answer, call, newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { expectRefusal } from '../support/refusals.ts'
import { describeOverSetups } from '../support/setups.ts'

const billing = 'a-token-of-the-billing-service'
const admin = `, token: a-token-for-operators-0123456789, tokens: { billing: ${billing} }`

interface Entry {
  id: number
  user_id: number | null
  status: number
  [field: string]: unknown
}

describeOverSetups('the audit log', setup => {
  const at = journey(setup, { admin })
  const ask = (method: string, path: string, body?: unknown, token = at.gateway.adminToken) =>
    call(at.gateway.admin, method, `/admin/v1${path}`, { body, token })
  const entries = async (query = '') => (await ask('GET', `/audit${query}`)).body.entries as Entry[]

  it('records the operator, the user, the changes, the time and the status of a call', async () => {
    const user = await newUser(at.gateway)
    const answer = await call(at.gateway.admin, 'PATCH', `/admin/v1/users/${user.id}/`, {
      token: billing,
      body: { plan: 'pro', is_active: true },
      headers: { 'x-request-id': 'payment-17' },
    })
    expect([answer.status, answer.headers.get('x-request-id')]).toEqual([200, 'payment-17'])
    expect(await entries(`?user_id=${user.id}`)).toEqual([
      {
        id: expect.any(Number),
        at: new Date(at.gateway.clock.at).toISOString(),
        operator: 'billing',
        channel: 'api',
        action: 'changeUser',
        method: 'PATCH',
        route: '/admin/v1/users/:id',
        user_id: user.id,
        email: user.email,
        changes: { plan: 'pro', is_active: 1 },
        previous: { plan: 'free', is_active: 1 },
        status: 200,
        request_id: 'payment-17',
      },
    ])
  })

  it('shows the values before each change, and the user’s current email, which the audit table does not store', async () => {
    const user = await newUser(at.gateway)
    const email = `now.${user.email}`
    await ask('PATCH', `/users/${user.id}`, { email_verified: true })
    await ask('PATCH', `/users/${user.id}`, { email })
    await ask('PATCH', `/users/${user.id}`, { is_active: 0, email_verified: false, plan: 'premium' })
    expect(await entries(`?user_id=${user.id}`)).toMatchObject([
      {
        email,
        changes: { is_active: 0, email_verified: false, plan: 'premium' },
        previous: { is_active: 1, email_verified: false, plan: 'free' },
      },
      { email, changes: { email: 'set' }, previous: null },
      { email, changes: { email_verified: true }, previous: { email_verified: false } },
    ])
    const stored = await at.gateway.sql('select * from admin_audit where user_id = $1', [user.id])
    expect(JSON.stringify(stored)).not.toContain(user.email)
    await ask('DELETE', `/users/${user.id}`)
    expect((await entries(`?user_id=${user.id}`)).map(entry => entry.email)).toEqual([null, null, null, null])
  })

  it('contains the channel of a call: "console" for a session cookie, "cli" for a token with the CLI’s header', async () => {
    const user = await newUser(at.gateway)
    const origin = new URL(at.gateway.admin).origin
    const signedIn = await fetch(`${at.gateway.admin}/console/session`, {
      method: 'POST',
      headers: { origin },
      body: JSON.stringify({ token: at.gateway.adminToken }),
    })
    const cookie = String(signedIn.headers.get('set-cookie')).split(';')[0] ?? ''
    const patch = (headers: Record<string, string>) =>
      fetch(`${at.gateway.admin}/admin/v1/users/${user.id}`, { method: 'PATCH', headers, body: '{}' })
    const authorization = `Bearer ${at.gateway.adminToken}`
    for (const headers of [
      { cookie, origin },
      { cookie, origin, 'x-peage-channel': 'cli' },
      { authorization, cookie },
      { authorization, 'x-peage-channel': 'cli' },
      { authorization, 'x-peage-channel': 'console' },
    ])
      expect((await patch(headers)).status).toBe(200)
    expect((await patch({ 'x-peage-channel': 'cli' })).status).toBe(401)
    const found = await entries(`?user_id=${user.id}`)
    expect(found.map(({ channel }) => channel).reverse()).toEqual(['console', 'console', 'api', 'cli', 'api'])
    expect((await entries('?action=signInToConsole'))[0]).toMatchObject({ channel: 'console', email: null })
  })

  it('is filtered by action and time, and refuses an invalid filter', async () => {
    const user = await newUser(at.gateway)
    const day = new Date(at.gateway.clock.at + 86_400_000).toISOString().slice(0, 10)
    at.gateway.clock.at = Date.parse(`${day}T12:00:00Z`)
    await ask('PATCH', `/users/${user.id}`, { plan: 'pro' })
    await ask('POST', `/users/${user.id}/reset-usage`)
    const count = async (query: string) => (await entries(`?user_id=${user.id}&${query}`)).length
    for (const [query, expected] of [
      ['action=changeUser', 1],
      ['action=resetUsage', 1],
      ['action=deleteUser', 0],
      [`from=${day}`, 2],
      [`to=${day}`, 2],
      [`from=${day}T12:00:00Z`, 2],
      [`from=${day}T12:00:00.001Z`, 0],
      [`to=${day}T12:00:00Z`, 0],
      [`to=${day}T14:00:01%2B02:00`, 2],
      ['to=2020-01-31', 0],
      [`from=${day}&to=${day}&action=changeUser`, 1],
    ] as const)
      expect([query, await count(query)]).toEqual([query, expected])
    for (const query of [
      'action=nothing',
      'action=changeUser&action=resetUsage',
      ...['', 'yesterday', '2026-02-30', '2026-01-01T25:00Z', '0000-01-01'].map(text => `from=${text}`),
      'to=2026-1-1',
      'from=2026-01-01&from=2026-01-02',
    ])
      expect([query, (await ask('GET', `/audit?${query}`)).status]).toEqual([query, 400])
  })

  it('has entries for ended sessions and for alerts, but does not contain the data of an alert', async () => {
    const user = await newUser(at.gateway, 'pro')
    const ended = await ask('DELETE', `/users/${user.id}/sessions`)
    const alert = { type: 'course.done', data: { n: 'secret' }, user_id: user.id }
    const sent = await ask('POST', '/alerts', alert)
    const idOf = ({ headers }: Answer) => headers.get('x-request-id')
    expect(await entries(`?user_id=${user.id}`)).toMatchObject([
      { route: '/admin/v1/alerts', changes: { type: 'course.done' }, status: 202, request_id: idOf(sent) },
      { route: '/admin/v1/users/:id/sessions', changes: {}, status: 200, request_id: idOf(ended) },
    ])
    await ask('POST', '/alerts', { type: 'to.all', data: {} })
    expect((await entries())[0]).toMatchObject({ user_id: null, changes: { type: 'to.all' } })
  })

  it('contains only the first refused call per operator, route and minute, without the requested changes', async () => {
    const user = await newUser(at.gateway)
    const minutesLater = () => {
      at.gateway.clock.at += 60_000
    }
    minutesLater()
    await ask('PATCH', `/users/${user.id}`, { plan: 'gold' })
    await ask('PATCH', `/users/${user.id}`, { plan: 'silver' })
    await ask('PATCH', `/users/${user.id}`, { plan: 'gold' }, billing)
    minutesLater()
    await ask('PATCH', `/users/${user.id}`, `{"plan":"pro","x":"${'x'.repeat(70_000)}"}`)
    minutesLater()
    await ask('PATCH', '/users/99999999', { plan: 'pro' })
    await ask('POST', '/alerts', { type: 'x', user_id: 99_999_998 })
    // An export changes nothing, but the audit log contains refused exports too.
    for (let i = 0; i < 2; i += 1) await ask('GET', '/users/99999997/export')
    expect(await entries(`?user_id=${user.id}`)).toMatchObject([
      { status: 413, changes: null },
      { status: 400, changes: null, operator: 'billing' },
      { status: 400, changes: null, operator: 'token' },
    ])
    expect(await entries('?user_id=99999999')).toMatchObject([{ status: 404, changes: null }])
    expect(await entries('?user_id=99999998')).toMatchObject([{ status: 404, changes: null }])
    expect(await entries('?user_id=99999997')).toMatchObject([{ status: 404, changes: null, method: 'GET' }])
  })

  it('contains no entry for a read or for a call without a valid token', async () => {
    const user = await newUser(at.gateway)
    const before = await entries()
    await ask('GET', `/users/${user.id}`)
    await ask('PATCH', `/users/${user.id}`, { plan: 'pro' }, 'not-a-token-of-anybody')
    await ask('PUT', `/users/${user.id}`, { plan: 'pro' })
    expect(await entries()).toEqual(before)
    expect((await ask('GET', `/users/${user.id}`)).body.plan).toBe('free')
  })

  it('if it cannot store an entry, makes the change fail with 503', async () => {
    const user = await newUser(at.gateway, 'pro')
    const { sql } = at.gateway
    const url = 'https://nobody.invalid/hook'
    await call(at.gateway.url, 'POST', '/api/v1/user/webhook', { token: user.access, body: { url } })
    await sql('alter table admin_audit rename to admin_audit_away')
    try {
      const answers = await Promise.all([
        ask('PATCH', `/users/${user.id}`, { plan: 'free', is_active: 0 }),
        ask('DELETE', `/users/${user.id}/sessions`),
        ask('POST', '/alerts', { type: 'x', user_id: user.id }),
        ask('PATCH', `/users/${user.id}`, { plan: 'gold' }),
      ])
      for (const answer of answers) expectRefusal(answer, 503, 'service_unavailable', 'Service indisponible')
    } finally {
      await sql('alter table admin_audit_away rename to admin_audit')
    }
    expect((await ask('GET', `/users/${user.id}`)).body).toMatchObject({ plan: 'pro', is_active: 1 })
    expect((await ask('GET', `/users/${user.id}/sessions`)).body.sessions).toHaveLength(1)
    expect((await ask('GET', `/deliveries?user_id=${user.id}`)).body.deliveries).toEqual([])
  })

  it('keeps the entries of a deleted user, and the API cannot change any entry', async () => {
    const user = await newUser(at.gateway)
    await ask('PATCH', `/users/${user.id}`, { plan: 'pro' })
    await at.gateway.sql('delete from users where id = $1', [user.id])
    const [entry] = await entries(`?user_id=${user.id}`)
    expect(entry).toMatchObject({ user_id: user.id, changes: { plan: 'pro' } })
    for (const method of ['DELETE', 'POST', 'PUT', 'PATCH']) {
      const answer = await ask(method, '/audit')
      expectRefusal(answer, 405, 'method_not_allowed', 'Méthode non autorisée')
      expect(answer.headers.get('allow')).toBe('GET, HEAD')
    }
  })

  it('is filtered by operator; its pages contain each entry once', async () => {
    await at.gateway.sql(
      `insert into admin_audit (at, operator, method, route, status, request_id)
       select now(), 'robot', 'POST', '/admin/v1/alerts', 202, n::text from generate_series(1, 250) n`,
    )
    const seen: unknown[] = []
    let cursor: unknown
    do {
      const { body } = await ask('GET', `/audit?operator=robot${cursor ? `&cursor=${cursor}` : ''}`)
      seen.push(...(body.entries as Entry[]).map(entry => Number(entry.request_id)))
      cursor = body.next_cursor
    } while (cursor !== null)
    expect(seen).toEqual(Array.from({ length: 250 }, (_, i) => 250 - i))
    expect(await entries('?operator=nobody')).toEqual([])
    for (const query of ['operator=%00', 'operator=a&operator=b', 'user_id=x', 'cursor=-1'])
      expectRefusal(await ask('GET', `/audit?${query}`), 400, 'request_invalid', 'Requête invalide')
  })
})

describe('the log of the admin listener', () => {
  it('has one line per call with the caller, path and status, but not the token', async () => {
    const gateway = await startGateway('', undefined, { admin })
    await call(gateway.admin, 'GET', '/admin/v1/users?email=a@b', {
      token: billing,
      headers: { 'x-request-id': 'r-1' },
    })
    await call(gateway.admin, 'GET', '/admin/v1/users', { token: 'not-a-token-of-anybody' })
    await call(gateway.admin, 'GET', '/healthz')
    const lines = gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'admin')
    expect(lines).toMatchObject([
      { request_id: 'r-1', operator: 'billing', method: 'GET', path: '/admin/v1/users', status: 200 },
      { client: '127.0.0.1', method: 'GET', path: '/admin/v1/users', status: 401 },
    ])
    expect(lines[1]).not.toHaveProperty('operator')
    expect(gateway.log.join('')).not.toMatch(/a-token-of|not-a-token/)
    await gateway.stop()
  })

  it('has one line without a status for a call whose client disconnects before the response', async () => {
    const gateway = await startGateway('', undefined, { admin })
    const { id } = await newUser(gateway)
    const { hostname, port } = new URL(gateway.admin)
    const leave = (requestId: string, body: string) => {
      const socket = connect(Number(port), hostname)
      const fields = `Host: localhost\r\nAuthorization: Bearer ${billing}\r\nX-Request-Id: ${requestId}\r\nContent-Length: 14\r\n`
      socket.write(`PATCH /admin/v1/users/${id} HTTP/1.1\r\n${fields}\r\n${body}`, () => socket.destroy())
    }
    leave('r-whole', '{"plan":"pro"}')
    leave('r-half', '{"plan":')
    const plans = () => gateway.sql<{ plan: string }>('select plan from users where id = $1', [id])
    await expect.poll(plans).toEqual([{ plan: 'pro' }])
    const lines = () => gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'admin')
    await expect
      .poll(() =>
        lines()
          .map(line => line.request_id)
          .sort(),
      )
      .toEqual(['r-half', 'r-whole'])
    const half = lines().find(line => line.request_id === 'r-half')
    expect(half).toMatchObject({ operator: 'billing', method: 'PATCH', path: '/admin/v1/users/:id' })
    expect(half).not.toHaveProperty('status')
    await gateway.stop()
    expect(lines()).toHaveLength(2)
  })
})
