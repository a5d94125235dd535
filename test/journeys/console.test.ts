// Tests the server side of the console: the sign-in, the session cookies, and the requests that a cookie allows.
import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { startGateway } from '../support/gateway.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

type Headers = Record<string, string | string[]>
interface Answer {
  status: number
  code: unknown
  headers: Record<string, string | string[] | undefined>
  text: string
}

const tokens = { all: 'a-token-that-may-all-0123456789', reader: 'a-token-that-reads-0123456789' }
const admin = (more = '') =>
  `, tokens: { boss: '${tokens.all}', reader: { token: ${tokens.reader}, may: read } }${more}`

/** Uses `node:http`, because `fetch` sets `Origin` and `Host` itself. */
function send(base: string, method: string, path: string, headers: Headers = {}, body?: object) {
  const { hostname, port } = new URL(base)
  return new Promise<Answer>((resolve, reject) => {
    const sent = request({ hostname, port, method, path, headers }, response => {
      let text = ''
      response.setEncoding('latin1').on('data', part => {
        text += part
      })
      const { statusCode: status = 0, headers: received } = response
      response.on('end', () => resolve({ status, code: received['x-peage-error'], headers: received, text }))
    })
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body))
  })
}

const cookieOf = ({ headers }: Answer) => String(headers['set-cookie']).split(';')[0] ?? ''
const told = ({ status, code }: Answer) => [status, code]
const unauthorized = [401, 'admin_unauthorized']
const forbidden = [403, 'admin_unauthorized']

describe('the console', () => {
  const at = journey(
    embeddedSetup,
    { admin: admin() },
    upstream =>
      `upstreams: { app: { targets: ['${upstream}'] } }\nroutes: [{ path: /all, upstream: app, auth: none }]\n`,
  )
  const own = () => new URL(at.gateway.admin).origin
  const signIn = (token: string, headers: Headers = { origin: own() }) =>
    send(at.gateway.admin, 'POST', '/console/session', headers, { token })
  const session = (headers: Headers) => send(at.gateway.admin, 'GET', '/console/session', headers)
  const patch = (headers: Headers) =>
    send(at.gateway.admin, 'PATCH', '/admin/v1/users/1', headers, { plan: 'pro' })

  it('serves its page and its compressed files, and forbids inline scripts and scripts of other sites', async () => {
    const page = await send(at.gateway.admin, 'GET', '/console')
    expect([page.status, page.headers['cache-control'], page.headers['referrer-policy']]).toEqual([
      200,
      'no-store',
      'no-referrer',
    ])
    expect(page.headers.vary).toBe('accept-encoding')
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    expect(page.text).not.toMatch(/<style|style=|<script>|\son\w+=|https?:/)
    const files = [...page.text.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '')
    expect(files).toHaveLength(3)
    for (const path of files) {
      const file = await send(at.gateway.admin, 'GET', path, { 'accept-encoding': 'gzip, br' })
      expect([file.status, file.headers['content-encoding'], file.headers.vary]).toEqual([
        200,
        'br',
        'accept-encoding',
      ])
      expect(file.headers['cache-control']).toBe('public, max-age=31536000, immutable')
      expect(file.headers['x-content-type-options']).toBe('nosniff')
    }
    expect(told(await send(at.gateway.admin, 'GET', '/console/assets/app.js'))).toEqual([
      404,
      'route_unknown',
    ])
    expect(told(await send(at.gateway.admin, 'POST', '/console'))).toEqual([405, 'method_not_allowed'])
  })

  it('is the page to which the admin listener redirects requests for /', async () => {
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await send(at.gateway.admin, method, '/')
      expect([status, headers.location, headers['cache-control']]).toEqual([302, '/console', 'no-store'])
    }
    const post = await send(at.gateway.admin, 'POST', '/')
    expect([...told(post), post.headers.allow]).toEqual([405, 'method_not_allowed', 'GET, HEAD'])
    expect(told(await send(at.gateway.admin, 'GET', '/', { host: 'evil.example' }))).toEqual(forbidden)
  })

  it('exchanges a token for a session cookie, which is invalid after the sign-out', async () => {
    const answer = await signIn(tokens.reader)
    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(String(answer.headers['set-cookie'])).toMatch(
      /^peage-console=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    )
    const cookie = cookieOf(answer)
    const shown = await session({ cookie })
    expect(JSON.parse(shown.text)).toEqual({
      operator: 'reader',
      may: 'read',
      expires_at: new Date(at.gateway.clock.at + 28_800_000).toISOString(),
    })
    for (const path of ['/admin/v1/users', '/openapi.json'])
      expect((await send(at.gateway.admin, 'GET', path, { cookie })).status).toBe(200)
    expect(told(await patch({ cookie, origin: own() }))).toEqual([403, 'admin_forbidden'])
    const out = await send(at.gateway.admin, 'DELETE', '/console/session', { cookie, origin: own() })
    expect([out.status, String(out.headers['set-cookie'])]).toEqual([
      204,
      'peage-console=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict',
    ])
    expect(told(await session({ cookie }))).toEqual(unauthorized)
    expect((await send(at.gateway.admin, 'DELETE', '/console/session', { origin: own() })).status).toBe(204)
    const [entry] = await at.gateway.sql<{ operator: string; route: string; status: number }>(
      "select operator, route, status from admin_audit where route = '/console/session' order by id desc limit 1",
    )
    expect(entry).toEqual({ operator: 'reader', route: '/console/session', status: 204 })
  })

  it('ends a session after eight hours', async () => {
    const cookie = cookieOf(await signIn(tokens.all))
    at.gateway.clock.at += 28_799_999
    expect((await session({ cookie })).status).toBe(200)
    at.gateway.clock.at += 1
    expect(told(await session({ cookie }))).toEqual(unauthorized)
  })

  it.each<[string, (own: string) => Headers]>([
    ['no Origin', () => ({})],
    ['another Origin', () => ({ origin: 'https://evil.example' })],
    ['another scheme', own => ({ origin: own.replace('http:', 'https:') })],
    ['an Origin of null', () => ({ origin: 'null' })],
    ['its own Origin, from another site', own => ({ origin: own, 'sec-fetch-site': 'cross-site' })],
    [
      'the headers of an untrusted proxy',
      own => ({ origin: 'https://a.example', 'x-forwarded-host': 'a.example', own }),
    ],
  ])('refuses a change, a sign-in and a sign-out with %s', async (_, headers) => {
    const cookie = cookieOf(await signIn(tokens.all))
    expect(told(await patch({ cookie, ...headers(own()) }))).toEqual(forbidden)
    expect(told(await signIn(tokens.all, headers(own())))).toEqual(forbidden)
    const out = await send(at.gateway.admin, 'DELETE', '/console/session', { cookie, ...headers(own()) })
    expect(told(out)).toEqual(forbidden)
    expect((await session({ cookie })).status).toBe(200)
  })

  it('refuses reads from another site', async () => {
    const cookie = cookieOf(await signIn(tokens.all))
    for (const site of ['cross-site', 'same-site'])
      for (const path of ['/console/session', '/admin/v1/users', '/openapi.json', '/console'])
        for (const from of [{ 'sec-fetch-site': site }, { host: 'evil.example' }]) {
          const answer = await send(at.gateway.admin, 'GET', path, { cookie, ...from })
          expect([path, ...told(answer)]).toEqual([path, ...forbidden])
        }
  })

  it('accepts a bearer token instead of the cookie; a request with a bearer token needs no Origin header', async () => {
    const cookie = cookieOf(await signIn(tokens.all))
    expect(told(await patch({ cookie, authorization: `Bearer ${tokens.reader}` }))).toEqual([
      403,
      'admin_forbidden',
    ])
    expect(told(await patch({ cookie, authorization: 'Bearer wrong' }))).toEqual(unauthorized)
    expect(told(await patch({ authorization: `Bearer ${tokens.all}` }))).toEqual([404, 'user_not_found'])
  })

  it('ignores cookies with another name, and skips a cookie with an unknown value', async () => {
    const cookie = cookieOf(await signIn(tokens.all))
    expect(told(await session({ cookie: `__Host-${cookie}` }))).toEqual(unauthorized)
    expect((await session({ cookie: `peage-console=x; ${cookie}` })).status).toBe(200)
  })

  it('limits wrong tokens per client address, but still accepts a valid token', async () => {
    at.gateway.clock.at += 60_000
    for (let tries = 0; tries < 10; tries += 1) expect(told(await signIn('wrong'))).toEqual(unauthorized)
    const refused = await signIn('wrong')
    expect([...told(refused), Number(refused.headers['retry-after'])]).toEqual([429, 'rate_limited', 60])
    expect((await signIn(tokens.all)).status).toBe(204)
    at.gateway.clock.at += 60_000
    expect(told(await signIn('wrong'))).toEqual(unauthorized)
  })

  it('refuses a request from another site with 403, even if its URL is invalid', async () => {
    const bad = (headers: Headers) => send(at.gateway.admin, 'GET', '/admin/v1/users/%zz', headers)
    expect(told(await bad({ host: 'evil.example' }))).toEqual(forbidden)
    expect(told(await bad({ 'sec-fetch-site': 'cross-site' }))).toEqual(forbidden)
    expect(told(await bad({}))).toEqual([400, 'path_invalid'])
  })

  it('never forwards its cookies to an upstream', async () => {
    await send(at.gateway.url, 'GET', '/all', { cookie: 'a=b; peage-console=x; __Host-peage-console=y; c=d' })
    await send(at.gateway.url, 'GET', '/all', { cookie: 'peage-console=x' })
    await send(at.gateway.url, 'GET', '/all', { cookie: ['a=b; peage-console=x', 'PEAGE-CONSOLE=z;c=d'] })
    const sent = at.upstream.received.map(({ headers }) => headers.cookie)
    expect(sent).toEqual(['a=b; c=d', undefined, 'a=b;c=d'])
  })
})

describe('the console behind a TLS proxy', () => {
  it('sets a Secure cookie, because it trusts the X-Forwarded headers of the proxy', async () => {
    const gateway = await startGateway('', undefined, {
      admin: admin(),
      server: ", trusted_proxies: ['127.0.0.1']",
    })
    try {
      const headers = {
        host: 'admin.example',
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '198.51.100.7',
        origin: 'https://admin.example',
      }
      const answer = await send(gateway.admin, 'POST', '/console/session', headers, { token: tokens.all })
      expect([answer.status, String(answer.headers['set-cookie'])]).toEqual([
        204,
        expect.stringMatching(/^__Host-peage-console=[\w-]{43}; .*; Secure$/),
      ])
      const cookie = cookieOf(answer)
      const users = await send(gateway.admin, 'GET', '/admin/v1/users', { ...headers, cookie })
      expect(users.status).toBe(200)
      const plain = { cookie, host: 'localhost', 'x-forwarded-proto': 'http' }
      expect(told(await send(gateway.admin, 'GET', '/console/session', plain))).toEqual(unauthorized)
    } finally {
      await gateway.stop()
    }
  })
})

describe('a console session whose token was removed from the configuration', () => {
  it('ends, and stays ended when the token is added again', async () => {
    const gateway = await startGateway('', undefined, { admin: admin() })
    try {
      const origin = new URL(gateway.admin).origin
      const signIn = (token: string) => send(gateway.admin, 'POST', '/console/session', { origin }, { token })
      const cookies = {
        gone: cookieOf(await signIn(tokens.reader)),
        stays: cookieOf(await signIn(tokens.all)),
      }
      const statusOf = async (cookie: string) =>
        (await send(gateway.admin, 'GET', '/console/session', { cookie })).status
      const restore = await gateway.configure([tokens.reader, 'another-token-0123456789abcdef'])
      expect([await statusOf(cookies.gone), await statusOf(cookies.stays)]).toEqual([401, 200])
      await restore()
      expect([await statusOf(cookies.gone), await statusOf(cookies.stays)]).toEqual([401, 200])
    } finally {
      await gateway.stop()
    }
  })
})

describe('a disabled console', () => {
  it.each([
    ['console: false', admin(', console: false')],
    ['no token', ''],
  ])('with %s, returns 404 for every path', async (_, settings) => {
    const gateway = await startGateway('', undefined, { admin: settings })
    try {
      for (const path of ['/', '/console', '/console/session', '/console/assets/x'])
        expect(told(await send(gateway.admin, 'GET', path))).toEqual([404, 'route_unknown'])
    } finally {
      await gateway.stop()
    }
  })
})
