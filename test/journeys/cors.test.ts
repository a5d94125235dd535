// Pages of allowed origins get CORS headers with every response, including preflights and refusals.
import { beforeAll, describe, expect, it } from 'vitest'
import { type Answer, call, newUser, type TestUser } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

const page = 'https://app.example.com'
const partner = 'https://partner.example.org'
const exposed = 'X-Peage-Error, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy'

const routes = (upstream: string) => `upstreams:
  echo: { targets: ['${upstream}'] }
  nobody: { targets: ['http://127.0.0.1:1'] }
routes:
  - { name: courses, path: /courses/*, upstream: echo, free_daily: true, methods: [GET] }
  - { name: pro, path: /pro, upstream: echo, plans: [pro] }
  - { name: public, path: /public, upstream: echo, auth: none }
  - { name: ruled, path: /ruled, upstream: echo, auth: none,
      headers: { response: { set: { Access-Control-Allow-Origin: 'https://wrong.example', Vary: Accept } } } }
  - { name: limited, path: /limited, upstream: echo, auth: none, rate_limit: 1/1h }
  - { name: down, path: /down, upstream: nobody, auth: none }
  - { name: partner, path: /partner, upstream: echo, methods: [POST],
      cors: { origins: ['${partner}'], credentials: true, expose_headers: [X-Total-Count], max_age: 90s } }
  - { name: partner-read, path: /partner, upstream: echo, auth: none, methods: [GET], cors: { origins: ['*'] } }
`

/**
 * Returns the header `vary` and the CORS headers. Removes the prefix `access-control-` from the names of the CORS
 * headers.
 */
const corsOf = ({ headers }: Answer) =>
  Object.fromEntries(
    [...headers]
      .filter(([name]) => name === 'vary' || name.startsWith('access-control-'))
      .map(([name, value]) => [name.replace('access-control-', ''), value]),
  )

describe('with CORS configured', () => {
  let user: TestUser
  const at = journey(
    embeddedSetup,
    { server: `, cors: { origins: ['HTTPS://APP.example.com:443'] }` },
    routes,
  )
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })

  const ask = (path: string, method: string, headers: Record<string, string> = {}, origin = page) =>
    call(at.gateway.url, 'OPTIONS', path, {
      headers: { origin, 'access-control-request-method': method, ...headers },
    })
  const get = (path: string, headers: Record<string, string> = { origin: page }, token?: string) =>
    call(at.gateway.url, 'GET', path, { headers, ...(token === undefined ? {} : { token }) })
  const dailyUsage = async () => {
    const sql = 'select daily_usage from users where id = $1'
    const [row] = await at.gateway.sql<{ daily_usage: number }>(sql, [user.id])
    return row?.daily_usage
  }

  it('the gateway answers a preflight before all guards; the preflight neither counts as a use nor reaches the upstream', async () => {
    // The preflight contains two credentials. Any other request with two credentials would be refused.
    const requestHeaders = {
      'access-control-request-headers': 'authorization,content-type',
      authorization: 'Bearer x',
      'x-api-key': 'y',
    }
    for (let i = 0; i < 3; i++) {
      for (const path of ['/courses/1', '/limited', '/down']) {
        const answer = await ask(path, 'GET', requestHeaders)
        expect([answer.status, answer.text]).toEqual([204, ''])
        expect(corsOf(answer)).toEqual({
          'allow-origin': page,
          'allow-headers': 'authorization,content-type',
          'allow-methods': expect.stringContaining('GET'),
          'max-age': '600',
          vary: 'Origin',
        })
        expect(answer.headers.get('cache-control')).toBe('no-store')
        expect(answer.headers.get('x-request-id')).not.toBeNull()
        expect(answer.headers.get('content-length')).toBeNull()
      }
    }
    expect(at.upstream.received).toEqual([])
    expect(await dailyUsage()).toBe(0)
    expect((await get('/limited')).status).toBe(200)
  })

  it.each([
    ['/api/v1/auth/login', 'POST'],
    ['/API/v1/auth/Register/', 'POST'],
    ['/.well-known/jwks.json', 'GET'],
  ])('the gateway answers a preflight to its own endpoint %s', async (path, method) => {
    const answer = await ask(path, method)
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-origin')).toBe(page)
    expect(answer.headers.get('access-control-allow-methods')).toContain(method)
  })

  it('the response to a preflight for an undeclared method contains the declared methods', async () => {
    const answer = await ask('/courses/1', 'DELETE')
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-methods')).toBe('GET, HEAD')
    expect((await ask('/public', 'PROPFIND')).headers.get('access-control-allow-methods')).toMatch(
      /, PROPFIND$/,
    )
    expect((await ask('/public', 'no such')).headers.get('access-control-allow-methods')).not.toContain(
      'no such',
    )
  })

  it('a preflight from an origin that is not allowed gets a 204 without CORS headers', async () => {
    for (const origin of [
      'https://evil.example',
      'null',
      '*',
      'http://app.example.com',
      `${page}.evil.example`,
    ]) {
      const answer = await ask('/public', 'GET', {}, origin)
      expect(answer.status).toBe(204)
      expect(corsOf(answer)).toEqual({ vary: 'Origin' })
    }
  })

  it('a page can read the 404 of an unknown path, and the preflight for this path succeeds', async () => {
    for (const path of ['/nothing', '/api/v1/auth/nothing']) {
      const preflight = await ask(path, 'DELETE', { 'access-control-request-headers': 'x-api-key' })
      expect(preflight.status).toBe(204)
      expect(corsOf(preflight)).toMatchObject({
        'allow-origin': page,
        'allow-methods': expect.stringContaining('DELETE'),
        'allow-headers': 'x-api-key',
      })
      const answer = await call(at.gateway.url, 'DELETE', path, { headers: { origin: page } })
      expect([answer.status, answer.headers.get('x-peage-error')]).toEqual([404, 'route_unknown'])
      expect(answer.headers.get('access-control-allow-origin')).toBe(page)
    }
  })

  it('a preflight for a forbidden path is refused, with an error that the page can read', async () => {
    const answer = await ask('/a%2Fb', 'GET')
    expect([answer.status, answer.headers.get('x-peage-error')]).toEqual([400, 'path_invalid'])
    expect(answer.headers.get('access-control-allow-origin')).toBe(page)
  })

  it('OPTIONS without Origin or Access-Control-Request-Method is handled like any other request', async () => {
    for (const headers of [{}, { origin: page }, { 'access-control-request-method': 'GET' }] as const) {
      const answer = await call(at.gateway.url, 'OPTIONS', '/public', { headers })
      expect(answer.status).toBe(200)
    }
    expect(at.upstream.received.map(({ method }) => method)).toEqual(['OPTIONS', 'OPTIONS', 'OPTIONS'])
    expect((await call(at.gateway.url, 'OPTIONS', '/pro')).status).toBe(401)
    expect(
      (await call(at.gateway.url, 'OPTIONS', '/api/v1/auth/login', { headers: { origin: page } })).status,
    ).toBe(405)
  })

  it('the gateway replaces the CORS headers of an upstream, and keeps its Vary header', async () => {
    at.upstream.answer = (_request, response) => {
      response.setHeader('Access-Control-Allow-Origin', '*')
      response.setHeader('Access-Control-Allow-Credentials', 'true')
      response.setHeader('Access-Control-Expose-Headers', 'X-Secret')
      response.setHeader('Vary', 'Accept-Encoding')
      response.end('ok')
    }
    const answer = await get('/public')
    expect([answer.status, answer.text]).toEqual([200, 'ok'])
    const vary = 'Accept-Encoding, Origin'
    expect(corsOf(answer)).toEqual({ 'allow-origin': page, 'expose-headers': exposed, vary })
    for (const headers of [{}, { origin: 'https://evil.example' }] as const)
      expect(corsOf(await get('/public', headers))).toEqual({ vary })
  })

  it('the header rules of a route cannot set CORS headers, but can set Vary', async () => {
    const answer = await get('/ruled')
    expect(answer.headers.get('access-control-allow-origin')).toBe(page)
    expect(answer.headers.get('vary')).toBe('Accept, Origin')
  })

  it('a page can read the refusals of the gateway and the failures of an upstream', async () => {
    await get('/courses/1', { origin: page }, user.access)
    const seen = [
      await get('/pro'),
      await get('/pro', { origin: page }, user.access),
      await get('/courses/1', { origin: page }, user.access),
      await get('/limited'),
      await get('/nothing'),
      await call(at.gateway.url, 'PUT', '/courses/1', { headers: { origin: page } }),
      await get('/down'),
      await get('/%2f'),
      await call(at.gateway.url, 'POST', '/api/v1/auth/login', { headers: { origin: page }, body: {} }),
      await call(at.gateway.url, 'GET', '/api/v1/auth/login', { headers: { origin: page } }),
    ]
    expect(seen.map(({ status }) => status)).toEqual([401, 403, 429, 429, 404, 405, 502, 400, 400, 405])
    for (const answer of seen) {
      expect(answer.headers.get('x-peage-error')).not.toBeNull()
      expect(corsOf(answer)).toEqual({ 'allow-origin': page, 'expose-headers': exposed, vary: 'Origin' })
    }
  })

  it('a page can read the successful responses of the gateway’s own endpoints', async () => {
    const { email, password } = user
    const login = await call(at.gateway.url, 'POST', '/api/v1/auth/login', {
      headers: { origin: page },
      body: { email, password },
    })
    const jwks = await get('/.well-known/jwks.json')
    for (const answer of [login, jwks]) {
      expect(answer.status).toBe(200)
      expect(corsOf(answer)).toMatchObject({ 'allow-origin': page, vary: 'Origin' })
    }
    expect((await get('/.well-known/jwks.json', {})).headers.get('vary')).toBe('Origin')
  })

  it('the CORS settings of a route replace the server’s settings for preflights, responses and refusals', async () => {
    const answer = await ask('/partner', 'POST', {}, partner)
    const allowed = { 'allow-origin': partner, 'allow-credentials': 'true' }
    expect(corsOf(answer)).toMatchObject({ ...allowed, 'allow-methods': 'POST', 'max-age': '90' })
    expect((await ask('/partner', 'POST')).headers.get('access-control-allow-origin')).toBeNull()

    const post = (token?: string) =>
      call(at.gateway.url, 'POST', '/partner', {
        headers: { origin: partner },
        ...(token === undefined ? {} : { token }),
      })
    for (const [answer, status] of [
      [await post(), 401],
      [await post(user.access), 200],
    ] as const) {
      expect(answer.status).toBe(status)
      expect(corsOf(answer)).toMatchObject({ ...allowed, 'expose-headers': `${exposed}, X-Total-Count` })
    }
  })

  it('if several routes have the same path, the requested method selects the route of a preflight', async () => {
    const read = await ask('/partner', 'GET', {}, 'https://anybody.example')
    expect(read.headers.get('access-control-allow-origin')).toBe('*')
    expect(read.headers.get('access-control-allow-methods')).toBe('GET, HEAD')
    expect((await get('/partner', { origin: 'null' })).headers.get('access-control-allow-origin')).toBe('*')
    const put = await call(at.gateway.url, 'PUT', '/partner', { headers: { origin: partner } })
    expect([put.status, put.headers.get('access-control-allow-origin')]).toEqual([405, partner])
  })

  it('the log line of a preflight contains the route', async () => {
    const answer = await ask('/partner', 'POST', {}, partner)
    const id = answer.headers.get('x-request-id')
    await expect.poll(() => at.gateway.log.find(line => line.includes(String(id)))).toBeDefined()
    const line = JSON.parse(String(at.gateway.log.find(text => text.includes(String(id)))))
    expect(line).toMatchObject({ route: 'partner', decision: 'answered', method: 'OPTIONS', status: 204 })
  })
})

describe('with CORS on one route only', () => {
  const at = journey(
    embeddedSetup,
    {},
    upstream => `upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { path: /open, upstream: echo, auth: none, cors: { origins: ['${page}'] } }
  - { path: /plain, upstream: echo, auth: none }
`,
  )

  it('requests and preflights for other paths are handled as if CORS were off, with unchanged headers', async () => {
    const headers = { origin: page, 'access-control-request-method': 'POST' }
    expect((await call(at.gateway.url, 'OPTIONS', '/open', { headers })).status).toBe(204)
    expect((await call(at.gateway.url, 'OPTIONS', '/api/v1/auth/login', { headers })).status).toBe(405)
    expect((await call(at.gateway.url, 'OPTIONS', '/plain', { headers })).status).toBe(200)
    expect(at.upstream.received.map(({ method, url }) => [method, url])).toEqual([['OPTIONS', '/plain']])
    at.upstream.answer = (_request, response) => {
      response.setHeader('Access-Control-Allow-Origin', '*')
      response.end()
    }
    const answer = await call(at.gateway.url, 'GET', '/plain', { headers: { origin: page } })
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
    expect(answer.headers.get('vary')).toBeNull()
    expect(
      (await call(at.gateway.url, 'GET', '/nothing', { headers: { origin: page } })).headers.get('vary'),
    ).toBeNull()
  })
})
