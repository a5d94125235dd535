// A web page in an operator's browser must not be able to use the admin listener, on loopback or any other address.
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLoopback } from '../../src/admin/cross-site.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'

type Headers = Record<string, string | string[]>

/** Uses `node:http`, because `fetch` does not let you set `Host`, `Origin` and some other headers. */
function send(base: string, method: string, path: string, headers: Headers, body?: string) {
  const { hostname, port } = new URL(base)
  return new Promise<{ status: number; code: unknown; cors: unknown }>((resolve, reject) => {
    const sent = request({ host: hostname.replace(/[[\]]/g, ''), port, method, path, headers }, response => {
      response.resume()
      const { 'x-peage-error': code, 'access-control-allow-origin': cors } = response.headers
      response.on('end', () => resolve({ status: response.statusCode ?? 0, code, cors }))
    })
    sent.on('error', reject).end(body)
  })
}

describe('the admin listener on loopback', () => {
  let gateway: TestGateway
  let user: TestUser
  let authorization: string
  const patch = (headers: Headers) =>
    send(
      gateway.admin,
      'PATCH',
      `/admin/v1/users/${user.id}`,
      { authorization, ...headers },
      '{"plan":"pro"}',
    )
  const plan = async () => (await gateway.sql('select plan from users where id = $1', [user.id]))[0]

  beforeAll(async () => {
    gateway = await startGateway('')
    user = await newUser(gateway)
    authorization = `Bearer ${gateway.adminToken}`
  })
  afterAll(() => gateway?.stop())

  it.each<[string, (own: string) => Headers]>([
    ['another site', () => ({ origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' })],
    ['another site, with an Origin but no Sec-Fetch-Site', () => ({ origin: 'https://evil.example' })],
    ['another site, with Sec-Fetch-Site but no Origin', () => ({ 'sec-fetch-site': 'cross-site' })],
    [
      'another port of the same machine',
      () => ({ origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }),
    ],
    ['a file or a sandboxed frame', () => ({ origin: 'null' })],
    [
      'a name that resolves to loopback',
      own => ({
        host: `evil.example:${own}`,
        origin: `http://evil.example:${own}`,
        'sec-fetch-site': 'same-origin',
      }),
    ],
    ['a name that resolves to loopback, with only its Host', own => ({ host: `evil.example:${own}` })],
    ['a name that only begins like loopback', own => ({ host: `127.0.0.1.evil.example:${own}` })],
    ['a name that only ends like loopback', own => ({ host: `evil-localhost:${own}` })],
  ])('refuses to change or read data for a page of %s, even with the admin token', async (_, headers) => {
    const answer = await patch(headers(new URL(gateway.admin).port))
    expect(answer).toEqual({ status: 403, code: 'admin_unauthorized', cors: undefined })
    expect(await plan()).toEqual({ plan: 'free' })
    const read = { authorization, ...headers(new URL(gateway.admin).port) }
    expect(await send(gateway.admin, 'GET', '/openapi.json', read)).toEqual({
      status: 403,
      code: 'admin_unauthorized',
      cors: undefined,
    })
  })

  it('refuses a preflight request', async () => {
    const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'PATCH' }
    const answer = await send(gateway.admin, 'OPTIONS', `/admin/v1/users/${user.id}`, preflight)
    expect(answer).toEqual({ status: 403, code: 'admin_unauthorized', cors: undefined })
  })

  it('accepts requests of programs with any loopback name as Host', async () => {
    const { port } = new URL(gateway.admin)
    for (const host of [
      `127.0.0.1:${port}`,
      `localhost:${port}`,
      'LOCALHOST',
      `[::1]:${port}`,
      'peage.localhost',
    ]) {
      const answer = await send(gateway.admin, 'GET', '/admin/v1/users', { authorization, host })
      expect([host, answer.status]).toEqual([host, 200])
    }
    const own = {
      host: `localhost:${port}`,
      origin: `http://localhost:${port}`,
      'sec-fetch-site': 'same-origin',
    }
    expect((await send(gateway.admin, 'GET', '/admin/v1/users', { authorization, ...own })).status).toBe(200)
  })

  it('accepts requests for health checks and metrics with any Host', async () => {
    for (const host of ['10.1.2.3:8081', 'peage-0.peage.svc', 'evil.example'])
      for (const path of ['/healthz', '/readyz', '/metrics'])
        expect((await send(gateway.admin, 'GET', path, { host })).status).toBe(200)
  })
})

describe('an admin listener on every address', () => {
  it('accepts requests with any Host, but refuses pages of other sites', async () => {
    const gateway = await startGateway('', undefined, { adminListen: '0.0.0.0:0' })
    const base = gateway.admin.replace('0.0.0.0', '127.0.0.1')
    const authorization = `Bearer ${gateway.adminToken}`
    const host = 'peage-admin.internal:8081'
    expect((await send(base, 'GET', '/admin/v1/users', { authorization, host })).status).toBe(200)
    const cross = { authorization, host, origin: 'https://evil.example' }
    expect((await send(base, 'GET', '/admin/v1/users', cross)).status).toBe(403)
    await gateway.stop()
  })
})

describe('isLoopback', () => {
  it.each([
    '127.0.0.1',
    '127.1.2.3',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '[::ffff:7f00:1]',
    'localhost',
    'a.localhost',
    'localhost.',
  ])('accepts %s', name => expect(isLoopback(name)).toBe(true))
  it.each([
    '',
    '0.0.0.0',
    '::',
    '::ffff:8f00:1',
    '10.0.0.1',
    '128.0.0.1',
    '127.0.0.1.a',
    'localhost.a',
    'alocalhost',
    '.localhost',
  ])('rejects %j', name => expect(isLoopback(name)).toBe(false))
})
