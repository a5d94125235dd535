// The admin listener serves health checks without a token. It serves account data only to operators.
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createAdminEndpoints } from '../../src/admin/api/serve-api.ts'
import { createDocumentation } from '../../src/composition/api-description.ts'
import { packageFacts } from '../../src/version.ts'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { call, newUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { claimsOf } from '../support/sessions.ts'
import { describeOverSetups } from '../support/setups.ts'

/** Uses `node:http`, because `fetch` refuses some methods, for example TRACE. */
function send({ port, method, path, token }: Record<'port' | 'method' | 'path' | 'token', string>) {
  return new Promise<{ status: number | undefined; allow: unknown; code: unknown }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` }
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, response => {
      response.resume()
      const { allow, 'x-peage-error': code } = response.headers
      response.on('end', () => resolve({ status: response.statusCode, allow, code }))
    })
    sent.on('error', reject).end()
  })
}

const fields = [
  'created_at',
  'daily_usage',
  'email',
  'email_verified_at',
  'id',
  'is_active',
  'last_usage_date',
  'plan',
]

describeOverSetups('the admin listener', setup => {
  const at = journey(setup)
  const ask = (method: string, path: string, body?: unknown, token = at.gateway.adminToken) =>
    call(at.gateway.admin, method, path, { body, token })

  it('reports that the process runs and whether it is ready', async () => {
    expect((await call(at.gateway.admin, 'GET', '/healthz')).body).toEqual({ status: 'ok' })
    const ready = await call(at.gateway.admin, 'GET', '/readyz')
    expect(ready.status).toBe(200)
    expect(ready.body).toMatchObject({ status: 'ok', checks: { postgres: 'ok' } })
    expect(ready.body.warnings).toEqual([expect.stringContaining('auth.key_secret')])
  })

  it('refuses a call without a valid token', async () => {
    for (const token of ['', 'wrong', `${at.gateway.adminToken}x`]) {
      const answer = await ask('GET', '/admin/v1/users', undefined, token)
      expect([answer.status, answer.body]).toEqual([401, { error: 'Non autorisé' }])
      expect(answer.headers.get('x-peage-error')).toBe('admin_unauthorized')
      expect(answer.headers.get('cache-control')).toBe('no-store')
    }
  })

  // All requests together fill one read of 64 KiB. Therefore, the server sees the end of the stream before it sends a
  // response.
  it('refuses a foreign Host with 403, even if the client ends its side of the connection before the response', async () => {
    const connection = new RawConnection(at.gateway.admin)
    await once(connection.socket, 'connect')
    const padded = requestBytes('GET', '/healthz?'.padEnd(8_000, 'a'), ['X-Pad: '])
    const many = Buffer.concat(Array.from({ length: 8 }, () => padded))
    const rest = 65_536 - many.length - requestBytes('GET', '/nowhere', ['X-Pad: ']).length
    connection.socket.end(
      Buffer.concat([many, requestBytes('GET', '/nowhere', [`X-Pad: ${'a'.repeat(rest)}`])]),
    )
    // The last request has the Host `gw.test`. This is not a loopback name, so the request is refused.
    expect((await connection.answers()).at(-1)?.status).toBe(403)
    connection.close()
  })

  it('treats a request with an Upgrade header like any other request, and never upgrades the connection', async () => {
    for (const upgrade of ['h2c', 'websocket']) {
      const connection = new RawConnection(at.gateway.admin)
      const ask = (path: string) =>
        connection.write(
          `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`,
        )
      for (const [path, status] of [
        ['/healthz', 200],
        ['/admin/v1/users', 401],
      ] as const) {
        ask(path)
        expect([upgrade, path, (await connection.answer())?.status]).toEqual([upgrade, path, status])
      }
      connection.close()
    }
  })

  it('refuses ambiguous requests with its own JSON error and X-Content-Type-Options: nosniff', async () => {
    const bearer = `Authorization: Bearer ${at.gateway.adminToken}`
    const of = (...fields: string[]) => `GET /admin/v1/users HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
    for (const [request, code] of [
      [of('Host: localhost', 'Host: other', bearer), 'request_invalid'],
      [of('Host: localhost', bearer, 'Expect: a-miracle'), 'request_invalid'],
      [of('Host: localhost', bearer, 'Authorization: Bearer another'), 'credentials_ambiguous'],
      [of('Host: localhost', 'Authorization: Basic x', bearer), 'credentials_ambiguous'],
      ['no request at all\r\n\r\n', 'request_invalid'],
      ['CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n', 'request_invalid'],
    ] as const) {
      const connection = new RawConnection(at.gateway.admin)
      connection.write(request)
      const { status, fields = [], body } = (await connection.answer()) ?? {}
      const sent = Object.fromEntries(fields)
      expect([request, status, sent['x-peage-error'], sent['x-content-type-options']]).toEqual([
        request,
        400,
        code,
        'nosniff',
      ])
      expect(JSON.parse(String(body))).toEqual({ error: expect.any(String) })
      connection.close()
    }
  })

  it('serves its OpenAPI description to a caller with the token', async () => {
    const { text, headers } = await ask('GET', '/openapi.json')
    expect(text).toBe(createDocumentation(packageFacts().version))
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  it('is not reachable through the client listener', async () => {
    for (const path of ['/admin/v1/users', '/healthz', '/readyz', '/metrics']) {
      const answer = await call(at.gateway.url, 'GET', path, { token: at.gateway.adminToken })
      expect([answer.status, answer.body]).toEqual([404, { error: 'Route inconnue' }])
    }
  })

  it('shows a user, even an inactive one, with the documented fields and without the password hash', async () => {
    const user = await newUser(at.gateway)
    await at.gateway.sql('update users set is_active = 0 where id = $1', [user.id])
    const { status, body } = await ask('GET', `/admin/v1/users/${user.id}`)
    expect(status).toBe(200)
    const more = ['api_keys', 'api_token', 'identities', 'sessions', 'subscription', 'usage', 'webhook']
    expect(Object.keys(body).sort()).toEqual([...fields, ...more].sort())
    expect(body).toMatchObject({
      id: user.id,
      email: user.email,
      plan: 'free',
      is_active: 0,
      last_usage_date: null,
    })
  })

  it('returns 404 for an ID that no user has', async () => {
    for (const id of ['999999999', '0', '-1', 'x', '1e3', '9007199254740993']) {
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', {}],
        ['GET', '/sessions'],
        ['DELETE', '/sessions'],
      ] as const) {
        const answer = await ask(method, `/admin/v1/users/${id}${path}`, body)
        expect([answer.status, answer.body]).toEqual([404, { error: 'Utilisateur introuvable' }])
      }
    }
  })

  it('lists users by email and by plan', async () => {
    const user = await newUser(at.gateway, 'premium')
    const byEmail = await ask('GET', `/admin/v1/users?email=${encodeURIComponent(user.email.toUpperCase())}`)
    expect(byEmail.body).toEqual({ users: [expect.objectContaining({ id: user.id })], next_cursor: null })
    const byPlan = await ask('GET', '/admin/v1/users?plan=premium')
    expect((byPlan.body.users as { plan: string }[]).every(({ plan }) => plan === 'premium')).toBe(true)
  })

  it('refuses invalid filters', async () => {
    expect((await ask('GET', '/admin/v1/users?plan=Gold')).body).toEqual({ error: 'Plan invalide' })
    expect((await ask('GET', '/admin/v1/users?cursor=x')).status).toBe(400)
    expect((await ask('GET', '/admin/v1/users?email=%00@x')).status).toBe(400)
    expect((await ask('GET', '/admin/v1/users?plan=free&plan=pro')).status).toBe(400)
    expect((await ask('GET', '/admin/v1/users?is_active=yes')).status).toBe(400)
  })

  it('returns 405 and the allowed methods for a method that a path does not support', async () => {
    const { port } = new URL(at.gateway.admin)
    for (const [path, allow, methods] of [
      ['/admin/v1/routes', 'GET, HEAD', ['POST', 'PUT', 'OPTIONS', 'PROPFIND', 'TRACE']],
      ['/admin/v1/users', 'GET, HEAD, POST', ['PUT', 'DELETE']],
      ['/admin/v1/users/1', 'GET, HEAD, PATCH, DELETE', ['PUT', 'POST']],
      ['/admin/v1/users/1/sessions/', 'GET, HEAD, DELETE', ['PATCH']],
      ['/admin/v1/alerts', 'POST', ['GET', 'HEAD', 'DELETE']],
      ['/healthz', 'GET, HEAD', ['POST', 'PROPFIND']],
      ['/readyz', 'GET, HEAD', ['DELETE']],
    ] as const) {
      for (const method of methods) {
        const answer = await send({ port, method, path, token: at.gateway.adminToken })
        expect([method, path, answer.status, answer.allow]).toEqual([method, path, 405, allow])
        expect(answer.code).toBe('method_not_allowed')
      }
    }
    const nobody = await send({ port, method: 'PUT', path: '/admin/v1/users', token: 'x' })
    expect(nobody.status).toBe(401)
  })

  it('returns 400 for a URL that cannot be decoded, and 404 for a path with a very long segment', async () => {
    const { port } = new URL(at.gateway.admin)
    const told = async (path: string, method = 'GET') => {
      const { status, code } = await send({ port, method, path, token: at.gateway.adminToken })
      return [status, code]
    }
    for (const path of ['/%zz', '/admin/v1/users/%zz', '/admin/v1/users/%E0%A4%A?x=1'])
      expect(await told(path)).toEqual([400, 'path_invalid'])
    const long = 'x'.repeat(3_000)
    const digits = '1'.repeat(3_000)
    expect(await told(`/console/assets/${long}`)).toEqual([404, 'route_unknown'])
    expect(await told(`/admin/v1/users/${digits}`)).toEqual([404, 'user_not_found'])
    expect(await told(`/admin/v1/deliveries/${digits}/retry`, 'POST')).toEqual([404, 'delivery_unknown'])
  })

  it('gives every response a request ID, and reuses the client’s request ID if it has only safe characters', async () => {
    const ids = await Promise.all(
      ['/healthz', '/admin/v1/users', '/admin/v1/nothing', '/nothing', '/admin/v1/users?cursor=x'].map(
        async path => (await ask('GET', path)).headers.get('x-request-id'),
      ),
    )
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every(id => id !== null && /^[\w-]+$/.test(id))).toBe(true)
    for (const [given, isKept] of [
      ['mine-1', true],
      ['not <safe>', false],
    ] as const) {
      const { headers } = await call(at.gateway.admin, 'GET', '/healthz', {
        headers: { 'x-request-id': given },
      })
      expect(headers.get('x-request-id') === given).toBe(isKept)
    }
  })

  it('refuses an invalid change and changes nothing', async () => {
    const user = await newUser(at.gateway)
    for (const [body, error, field] of [
      [{ plan: 'gold' }, 'Plan invalide'],
      [{ plan: 'pro', is_active: 2 }, 'Requête invalide', 'is_active'],
      [{ plan: 'pro', is_active: null }, 'Requête invalide', 'is_active'],
      [{ plan: 'pro', activ: 1 }, 'Requête invalide', 'activ'],
      ['{"plan":"pro","__proto__":{}}', 'Requête invalide', '__proto__'],
      [{ plan: 'pro', 'é"\n\u0007': 1 }, 'Requête invalide', 'é"\n\u0007'],
    ] as const) {
      const answer = await ask('PATCH', `/admin/v1/users/${user.id}`, body)
      expect([answer.status, answer.body]).toEqual([400, { error, ...(field && { field }) }])
    }
    expect((await ask('GET', `/admin/v1/users/${user.id}`)).body).toMatchObject({
      plan: 'free',
      is_active: 1,
    })
  })

  it('at every endpoint that requires a body, refuses a body that is not a JSON object or has an unknown member', async () => {
    const user = await newUser(at.gateway)
    const taking = [
      ['PATCH', `/admin/v1/users/${user.id}`, { plan: 'pro' }],
      ['POST', '/admin/v1/alerts', { type: 'x', user_id: user.id }],
      ['POST', '/admin/v1/users', { email: 'new@example.com' }],
      ['POST', '/admin/v1/explain', { method: 'GET', path: '/' }],
      ['POST', `/admin/v1/users/${user.id}/password`, { password: 'correct horse battery' }],
    ] as const
    const served = createAdminEndpoints({} as never).filter(
      ({ operation }) => operation.body !== undefined && !operation.isBodyOptional,
    )
    expect(taking).toHaveLength(served.length)
    for (const [method, path, known] of taking) {
      const text = JSON.stringify(known)
      for (const body of [undefined, '', 'null', '7', `[${text}]`, text.slice(0, -1), `\ufeff${text}`]) {
        const answer = await ask(method, path, body)
        expect([method, body, answer.status, answer.body]).toEqual([
          method,
          body,
          400,
          { error: 'Requête invalide' },
        ])
        expect(answer.headers.get('x-peage-error')).toBe('request_invalid')
      }
      const answer = await ask(method, path, { ...known, more: 1, most: 2 })
      expect([method, answer.status, answer.body]).toEqual([
        method,
        400,
        { error: 'Requête invalide', field: 'more' },
      ])
      expect((await ask(method, path, known)).status).toBeLessThan(300)
    }
  })

  it('at every endpoint that expects no body, refuses a body with members and changes nothing', async () => {
    const user = await newUser(at.gateway, 'pro')
    const changing = createAdminEndpoints({} as never).filter(
      ({ operation }) => operation.body === undefined && operation.method !== 'GET',
    )
    expect(changing.length).toBeGreaterThan(6)
    for (const { operation } of changing) {
      const path = operation.path.replace(':id', String(user.id)).replace(/:(session|key)/, 'x')
      const answer = await ask(operation.method, path, { all: false })
      expect([path, answer.status, answer.body]).toEqual([
        path,
        400,
        { error: 'Requête invalide', field: 'all' },
      ])
      const tooLong = await ask(operation.method, path, { all: 'x'.repeat(70_000) })
      expect([path, tooLong.status]).toEqual([path, 413])
    }
    expect((await ask('GET', `/admin/v1/users/${user.id}`)).body.sessions).toHaveLength(1)
    expect((await ask('POST', `/admin/v1/users/${user.id}/reset-usage`, {})).status).toBe(200)
  })

  it('lists a user’s sessions with the IDs that the tokens contain, and can end all of these sessions', async () => {
    const user = await newUser(at.gateway)
    const before = await ask('GET', `/admin/v1/users/${user.id}/sessions`)
    expect(before.body.sessions).toEqual([
      {
        id: claimsOf(user.access).sid,
        created_at: expect.any(String),
        expires_at: expect.any(String),
      },
    ])
    expect((await ask('DELETE', `/admin/v1/users/${user.id}/sessions`)).status).toBe(200)
    expect((await ask('GET', `/admin/v1/users/${user.id}/sessions`)).body.sessions).toEqual([])
    const refresh = await call(at.gateway.url, 'POST', '/api/v1/auth/refresh', {
      body: { refresh_token: user.refresh },
    })
    expect(refresh.headers.get('x-peage-error')).toBe('refresh_token_inactive')
  })
})

describe('an admin listener without a token', () => {
  it('serves health checks, and returns 403 for everything else', async () => {
    const gateway = await startGateway('', undefined, { admin: '' })
    expect((await call(gateway.admin, 'GET', '/healthz')).status).toBe(200)
    expect((await call(gateway.admin, 'GET', '/readyz')).status).toBe(200)
    const answer = await call(gateway.admin, 'GET', '/admin/v1/users', { token: 'x' })
    expect([answer.status, answer.body]).toEqual([403, { error: 'Administration désactivée' }])
    await gateway.stop()
  })
})
