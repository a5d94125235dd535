// Tests the responses to the questions of proxies (docs/forward-auth.md): identity headers, refusals, the statuses for
// nginx, counted uses, log and metrics.
import { createHash, randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RawAnswer, requestBytes, value } from '../security/raw-client.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'
import {
  type ClientRequest,
  codeOf,
  direct,
  identityOf,
  inFields,
  inPath,
  nobody,
  path,
  send,
} from './ask.ts'

const page = 'Origin: https://app.example.com'
const preflight = [
  page,
  'Access-Control-Request-Method: GET',
  'Access-Control-Request-Headers: authorization',
]

describeOverSetups('the response to a question', setup => {
  let pro: TestUser
  let free: TestUser
  const at = gatewayBefore(
    startUpstream,
    url => `plans:
  - { name: free, quotas: { exports: 2/day }, api_keys: 10 }
  - { name: pro, quotas: { exports: unlimited }, api_keys: 10 }
upstreams:
  app: { targets: ['${url}'] }
  down: { targets: ['http://127.0.0.1:1'], circuit_breaker: { failures: 1%, of_at_least: 1, open_for: 1h } }
routes:
  - { name: public, path: /public/*, auth: none }
  - { name: mine, path: /mine/*, upstream: app }
  - { name: pro, path: /pro/*, upstream: app, plans: [pro] }
  - { name: verified, path: /verified, upstream: app, verified: true }
  - { name: all, path: /all, upstream: app, forward_email: true, identity_assertion: true, scope: 'data:read' }
  - { name: maybe, path: /maybe, upstream: app, auth: optional, forward_email: true, identity_assertion: true }
  - { name: daily, path: /daily/*, upstream: app, free_daily: true }
  - { name: exports, path: /exports/*, upstream: app, quota: exports }
  - { name: limited, path: /limited/*, upstream: app, rate_limit: 2/1h }
  - { name: posted, path: /posted, upstream: app, methods: [POST] }
  - { name: open, path: /open, upstream: app, auth: none, cors: { origins: [https://app.example.com] } }
  - { name: slashes, path: /slashes/*, upstream: app, auth: none, allow_in_path: [double_slash] }
  - { name: small, path: /small, upstream: app, auth: none, max_body: 1B }
  - { name: down, path: /down, upstream: down, free_daily: true }
  - { name: open-circuit, path: /open-circuit, upstream: down, auth: none }
  - { name: spaced, path: /spaced/*, upstream: app, auth: none, allow_in_path: [semicolon] }
`,
    { server: ', forward_auth: { from: [127.0.0.1] }' },
    setup,
  )
  beforeAll(async () => {
    pro = await newUser(at.gateway, 'pro')
  })
  beforeEach(async () => {
    at.upstream.received.length = 0
    free = await newUser(at.gateway)
  })
  const bearer = ({ access }: TestUser) => `Authorization: Bearer ${access}`
  const ask = (about: ClientRequest) => send(at.gateway.url, inFields(about))
  /**
   * Sends a request as a client, and then two questions about it: with `X-Forwarded-*` headers, and with the target in
   * the path.
   */
  async function every(request: ClientRequest): Promise<RawAnswer[]> {
    const { method } = request
    return [
      await send(at.gateway.url, direct(request), method),
      await send(at.gateway.url, inFields(request)),
      await send(at.gateway.url, inPath(request), method),
    ]
  }
  async function codes(request: ClientRequest): Promise<string[]> {
    return (await every(request)).map(codeOf)
  }
  async function newKey({ id }: TestUser, scopes: readonly string[] | null): Promise<[string, string]> {
    const key = `peage_${randomUUID()}`
    const keyId = randomUUID()
    await at.gateway.sql(
      "insert into api_keys (id, user_id, token_hash, name, prefix, scopes) values ($1, $2, $3, 'key', '', $4)",
      [keyId, id, createHash('sha256').update(key).digest('hex'), scopes],
    )
    return [keyId, `X-API-Key: ${key}`]
  }

  it('is a 200 with every identity header and without a body if the request is allowed', async () => {
    for (const about of [inFields, inPath]) {
      const answer = await send(at.gateway.url, about({ target: '/mine/x', lines: [bearer(pro)] }))
      expect(codeOf(answer)).toBe('200')
      expect(identityOf(answer)).toEqual({ ...nobody, 'x-user-id': String(pro.id), 'x-user-plan': 'pro' })
      expect(answer.body.toString()).toBe('')
      expect(value(answer, 'content-length')).toBe('0')
      expect(value(answer, 'cache-control')).toBe('no-store')
      expect(value(answer, 'x-request-id')).toMatch(/./)
      expect(value(answer, 'x-peage-status')).toBeUndefined()
    }
    expect(at.upstream.received).toEqual([])
  })

  it('has every identity header if the request is anonymous, but all are empty', async () => {
    expect(identityOf(await ask({ target: '/public/x', lines: [bearer(pro)] }))).toEqual(nobody)
    expect(identityOf(await ask({ target: '/maybe' }))).toEqual(nobody)
    expect(codeOf(await ask({ target: '/maybe', lines: ['Authorization: Bearer x'] }))).toBe(
      '401 token_invalid',
    )
  })

  it('has the same email, key ID, scopes and assertion headers that the service would receive from the gateway', async () => {
    const [keyId, key] = await newKey(pro, ['data:read', 'data:write'])
    const answer = await ask({ target: '/all', lines: [key] })
    const { 'x-peage-assertion': assertion = '', ...others } = identityOf(answer)
    expect(others).toEqual({
      'x-user-id': String(pro.id),
      'x-user-plan': 'pro',
      'x-user-email': pro.email,
      'x-user-key-id': keyId,
      'x-user-scopes': 'data:read data:write',
    })
    expect(decodeJwt(assertion)).toMatchObject({ aud: 'app', sub: String(pro.id), plan: 'pro' })
    await send(at.gateway.url, direct({ target: '/all', lines: [key] }))
    const [received] = at.upstream.received
    expect(received?.headers).toMatchObject(others)
    expect(decodeJwt(String(received?.headers['x-peage-assertion']))).toMatchObject({ aud: 'app' })
    const [unlimited, wholeKey] = await newKey(pro, null)
    expect(identityOf(await ask({ target: '/all', lines: [wholeKey] }))).toMatchObject({
      'x-user-key-id': unlimited,
      'x-user-scopes': '',
    })
  })

  it.each([
    ['an unknown path', { target: '/nothing' }, '404 route_unknown'],
    ['another method', { target: '/posted' }, '405 method_not_allowed'],
    ['a dot segment', { target: '/mine/../pro/x' }, '400 path_invalid'],
    ['an encoded slash', { target: '/mine%2fx' }, '400 path_invalid'],
    ['a semicolon', { target: '/mine/x;y' }, '400 path_invalid'],
    ['a missing credential', { target: '/mine/x' }, '401 token_invalid'],
    [
      'two credentials',
      { target: '/public-or-not', lines: ['X-API-Key: a', 'X-API-Key: b'] },
      '404 route_unknown',
    ],
    [
      'two credentials on a route',
      { target: '/open', lines: ['X-API-Key: a', 'X-API-Key: b'] },
      '400 credentials_ambiguous',
    ],
    ['another letter case', { target: '/MINE/x/' }, '401 token_invalid'],
  ])('is the same refusal that a client gets for a request with %s', async (_, request, code) => {
    const [own, ...others] = await every(request)
    for (const other of others) {
      expect(codeOf(other)).toBe(code)
      expect(other.body).toEqual(own?.body)
      const besides = new Set(['date', 'x-request-id'])
      const fieldsOf = (answer?: RawAnswer) => answer?.fields.filter(([name]) => !besides.has(name))
      expect(fieldsOf(other)).toEqual(fieldsOf(own))
      expect(identityOf(other)).toEqual(
        Object.fromEntries(Object.keys(nobody).map(name => [name, undefined])),
      )
    }
    expect(own && codeOf(own)).toBe(code)
  })

  it('is the same 403 that a client gets for an insufficient plan, an unverified email or a missing scope', async () => {
    const [own, ...others] = await every({ target: '/pro/x', lines: [bearer(free)] })
    for (const other of others) expect(other.body.toString()).toBe(own?.body.toString())
    expect(JSON.parse(String(own?.body))).toMatchObject({ required: ['pro'], current_plan: 'free' })
    expect(await codes({ target: '/verified', lines: [bearer(free)] })).toEqual(
      Array(3).fill('403 email_unverified'),
    )
    const [, key] = await newKey(free, ['other'])
    expect(await codes({ target: '/all', lines: [key] })).toEqual(Array(3).fill('403 scope_insufficient'))
  })

  it('is 404 for the paths of the gateway, because a proxy must send these requests to the gateway instead', async () => {
    const own = [
      '/api/v1/auth/login',
      '/API/v1/auth/usage/',
      '/api/v1/auth/nothing',
      '/.well-known/jwks.json',
    ]
    for (const target of [...own, '/api/v1/subscription/upgrade', path, `${path}/mine/x`]) {
      for (const lines of [[bearer(pro)], preflight]) {
        const method = lines === preflight ? 'OPTIONS' : 'GET'
        expect([target, codeOf(await ask({ method, target, lines }))]).toEqual([target, '404 route_unknown'])
        const inside = await send(at.gateway.url, inPath({ method, target, lines }))
        expect([target, codeOf(inside)]).toEqual([target, '404 route_unknown'])
      }
    }
  })

  it('is 400 for a path with duplicate slashes, unless the route allows duplicate slashes', async () => {
    for (const target of ['//mine/x', '/mine//x', '/mine/x//', '//nothing', '//api/v1/auth/login']) {
      const lines = [bearer(pro)]
      expect([target, codeOf(await ask({ target, lines }))]).toEqual([target, '400 path_invalid'])
      expect([target, codeOf(await send(at.gateway.url, inPath({ target, lines })))]).toEqual([
        target,
        '400 path_invalid',
      ])
    }
    for (const target of ['/slashes//x', '//slashes/x', '/slashes///']) {
      expect([target, ...(await codes({ target }))]).toEqual([target, '200', '200', '200'])
    }
    // Duplicate slashes in the query are allowed.
    expect(codeOf(await ask({ target: '/mine/x?u=//y', lines: [bearer(pro)] }))).toBe('200')
  })

  it('does not depend on the length of the body, or on whether a target of the upstream is available', async () => {
    const lines = ['Content-Length: 5']
    const small = async (bytes: Buffer) =>
      codeOf(await send(at.gateway.url, Buffer.concat([bytes, Buffer.from('five!')])))
    expect(await small(direct({ method: 'POST', target: '/small', lines }))).toBe('413 body_too_large')
    expect(await small(inFields({ method: 'POST', target: '/small', lines }))).toBe('200')
    expect(await small(inPath({ method: 'POST', target: '/small', lines }))).toBe('200')
    await send(at.gateway.url, direct({ target: '/open-circuit' }))
    expect(codeOf(await send(at.gateway.url, direct({ target: '/open-circuit' })))).toBe(
      '503 upstream_unavailable',
    )
    expect(codeOf(await ask({ target: '/open-circuit' }))).toBe('200')
    expect(codeOf(await ask({ target: '/down', lines: [bearer(free)] }))).toBe('200')
  })

  it('counts as a daily use only if it is a 200, and questions and client requests share the daily uses', async () => {
    const uses = async () => {
      const [row] = await at.gateway.sql<{ daily_usage: number }>(
        'select daily_usage from users where id = $1',
        [free.id],
      )
      return row?.daily_usage
    }
    const lines = [bearer(free)]
    expect(codeOf(await ask({ target: '/daily/../x', lines }))).toBe('400 path_invalid')
    expect(codeOf(await ask({ target: '/pro/x', lines }))).toBe('403 plan_insufficient')
    expect(await uses()).toBe(0)
    const first = await ask({ target: '/daily/x', lines })
    expect([codeOf(first), await uses()]).toEqual(['200', 1])
    const [own, ...others] = await every({ target: '/daily/x', lines })
    for (const other of others) {
      expect(other.body.toString()).toBe(own?.body.toString())
      expect(codeOf(other)).toBe('429 daily_limit_reached')
      expect(Number(value(other, 'retry-after'))).toBeGreaterThan(0)
    }
    expect(await uses()).toBe(1)
    expect(at.upstream.received).toEqual([])
  })

  it('counts as a daily use even for OPTIONS with Max-Forwards: 0, because the proxy forwards the request', async () => {
    const request = { method: 'OPTIONS', target: '/daily/x', lines: ['Max-Forwards: 0', bearer(free)] }
    const asked = () => send(at.gateway.url, inPath(request), 'OPTIONS')
    expect([codeOf(await asked()), codeOf(await asked())]).toEqual(['200', '429 daily_limit_reached'])
  })

  it('is a 200 for only one of 20 concurrent questions if the user has one daily use', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask({ target: '/daily/x', lines: [bearer(free)] })),
    )
    expect(answers.map(codeOf).sort()).toEqual(['200', ...Array(19).fill('429 daily_limit_reached')])
  })

  it('counts as a use of the quota, and its RateLimit headers show the remaining uses', async () => {
    const lines = [bearer(free)]
    const first = await ask({ target: '/exports/x', lines })
    expect([codeOf(first), value(first, 'ratelimit-policy')]).toEqual(['200', '"quota:exports";q=2'])
    expect(value(first, 'ratelimit')).toMatch(/^"quota:exports";r=1;t=\d+$/)
    expect(codeOf(await send(at.gateway.url, direct({ target: '/exports/x', lines })))).toBe('200')
    const spent = await ask({ target: '/exports/x', lines })
    expect([codeOf(spent), value(spent, 'retry-after')]).toEqual(['429 quota_exceeded', expect.any(String)])
    expect(JSON.parse(spent.body.toString())).toMatchObject({ quota: 'exports', limit: 2, used: 2 })
  })

  it('counts toward the same rate limit as the requests of clients', async () => {
    const lines = [bearer(free)]
    const first = await ask({ target: '/limited/x', lines })
    expect([codeOf(first), value(first, 'ratelimit')]).toEqual([
      '200',
      expect.stringMatching(/^"limited";r=1;t=/),
    ])
    expect(codeOf(await send(at.gateway.url, direct({ target: '/limited/x', lines })))).toBe('200')
    expect(codeOf(await ask({ target: '/limited/x', lines }))).toBe('429 rate_limited')
    expect(codeOf(await send(at.gateway.url, direct({ target: '/limited/x', lines })))).toBe(
      '429 rate_limited',
    )
  })

  it('is the 204 that a client gets, with added empty identity headers, if the question is about a preflight', async () => {
    const [own, ...others] = await every({ method: 'OPTIONS', target: '/open', lines: preflight })
    const fieldsOf = (answer?: RawAnswer) =>
      answer?.fields.filter(([name]) => !['date', 'x-request-id'].includes(name) && !(name in nobody))
    for (const other of others) {
      expect([other.status, identityOf(other)]).toEqual([204, nobody])
      expect(fieldsOf(other)).toEqual(fieldsOf(own))
      expect(value(other, 'access-control-allow-origin')).toBe('https://app.example.com')
    }
    expect(own && identityOf(own)['x-user-id']).toBeUndefined()
    // On a route without CORS, a preflight is decided like any other request.
    expect(await codes({ method: 'OPTIONS', target: '/mine/x', lines: preflight })).toEqual(
      Array(3).fill('401 token_invalid'),
    )
  })

  it('has the CORS headers of the route', async () => {
    const answer = await ask({ target: '/open', lines: [page] })
    expect([codeOf(answer), value(answer, 'access-control-allow-origin')]).toEqual([
      '200',
      'https://app.example.com',
    ])
  })

  describe('with the query ?as=nginx', () => {
    const forNginx = (about: ClientRequest) => send(at.gateway.url, inFields(about, `${path}?as=nginx`))
    const told = async (about: ClientRequest) => {
      const answer = await forNginx(about)
      return [answer.status, value(answer, 'x-peage-status'), value(answer, 'x-peage-error')]
    }

    it('has the status 403 for every refusal except 401, and the real status in X-Peage-Status', async () => {
      expect(await told({ target: '/mine/x' })).toEqual([401, '401', 'token_invalid'])
      expect(await told({ target: '/pro/x', lines: [bearer(free)] })).toEqual([
        403,
        '403',
        'plan_insufficient',
      ])
      expect(await told({ target: '/nothing' })).toEqual([403, '404', 'route_unknown'])
      expect(await told({ target: '/posted' })).toEqual([403, '405', 'method_not_allowed'])
      expect(await told({ target: '/mine/..' })).toEqual([403, '400', 'path_invalid'])
      expect(await told({ target: 'x' })).toEqual([403, '400', 'request_invalid'])
      expect(await told({ target: '/mine/x', lines: ['X_User_Id: 1'] })).toEqual([
        403,
        '400',
        'request_invalid',
      ])
      expect(await told({ target: path })).toEqual([403, '404', 'route_unknown'])
      expect(await told({ target: '/mine/x', lines: [bearer(pro)] })).toEqual([200, undefined, undefined])
    })

    it('keeps all other headers and the body of a refusal', async () => {
      const lines = [bearer(free)]
      await ask({ target: '/daily/x', lines })
      const plain = await ask({ target: '/daily/x', lines })
      const answer = await forNginx({ target: '/daily/x', lines })
      expect([answer.status, value(answer, 'x-peage-status')]).toEqual([403, '429'])
      expect(answer.body.toString()).toBe(plain.body.toString())
      expect(value(answer, 'retry-after')).toMatch(/^\d+$/)
      expect(value(await forNginx({ target: '/posted' }), 'allow')).toBe('POST')
    })

    it('is 204 for a preflight', async () => {
      const answer = await forNginx({ method: 'OPTIONS', target: '/open', lines: preflight })
      expect([answer.status, identityOf(answer)]).toEqual([204, nobody])
    })

    it('has the real status if the question is not valid HTTP', async () => {
      const answer = await send(
        at.gateway.url,
        requestBytes('GET', `${path}?as=nginx`, ['Host: a', 'Host: b']),
      )
      expect([codeOf(answer), value(answer, 'x-peage-status')]).toEqual(['400 request_invalid', undefined])
      const long = [`X-Long: ${'a'.repeat(17_000)}`]
      expect(codeOf(await send(at.gateway.url, requestBytes('GET', `${path}?as=nginx`, long)))).toBe(
        '431 headers_too_large',
      )
    })

    it('differs from the response to a similar query, which has the real status', async () => {
      for (const query of ['?as=caddy', '?as=nginx&x', '?x&as=nginx', '?AS=nginx', '?']) {
        const answer = await send(at.gateway.url, inFields({ target: '/nothing' }, path + query))
        expect([query, codeOf(answer), value(answer, 'x-peage-status')]).toEqual([
          query,
          '404 route_unknown',
          undefined,
        ])
      }
    })
  })

  it('is logged and counted with the method, path, host, address and route of the client’s request', async () => {
    at.gateway.log.length = 0
    const lines = [bearer(pro), 'X-Forwarded-For: 203.0.113.9', 'X-Request-Id: from-the-proxy']
    await ask({ method: 'DELETE', target: '/mine/x?token=secret', host: 'api.example.com', lines })
    await send(at.gateway.url, inPath({ method: 'PUT', target: '/nothing', host: 'b.example.com' }))
    await send(at.gateway.url, direct({ target: '/public/x' }))
    const logged = () => at.gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    await expect.poll(() => logged().length).toBe(3)
    expect(logged()).toEqual([
      expect.objectContaining({
        request_id: 'from-the-proxy',
        forward_auth: true,
        route: 'mine',
        user_id: pro.id,
        decision: 'answered',
        method: 'DELETE',
        path: expect.stringMatching(/^\/mine\/x/),
        status: 200,
        client: '203.0.113.9',
        host: 'api.example.com',
      }),
      expect.objectContaining({
        forward_auth: true,
        decision: 'route_unknown',
        method: 'PUT',
        path: '/nothing',
        status: 404,
        client: '127.0.0.1',
        host: 'b.example.com',
      }),
      expect.not.objectContaining({ forward_auth: true }),
    ])
    expect(at.gateway.log.join('')).not.toContain('secret')
    const metrics = await (await fetch(`${at.gateway.admin}/metrics`)).text()
    expect(metrics).toContain(
      'http_requests_total{route="mine",method="DELETE",status="200",forward_auth="true"} 1',
    )
    expect(metrics).toContain(
      'http_requests_total{route="none",method="PUT",status="404",forward_auth="true"} 1',
    )
    expect(metrics).not.toMatch(/http_requests_total\{route="mine",method="DELETE",status="200"\}/)
  })

  it('is only for proxies, so a client that requests a route without an upstream directly gets 404', async () => {
    for (const lines of [
      [],
      [bearer(pro)],
      [bearer(pro), bearer(pro)],
      ['X-API-Key: a', 'X-API-Key: b'],
      preflight,
    ]) {
      const method = lines === preflight ? 'OPTIONS' : 'GET'
      expect(codeOf(await send(at.gateway.url, direct({ method, target: '/public/x', lines })))).toBe(
        '404 route_unknown',
      )
    }
    expect(codeOf(await send(at.gateway.url, direct({ method: 'HEAD', target: '/public/x' }), 'HEAD'))).toBe(
      '404 route_unknown',
    )
    expect(at.upstream.received).toEqual([])
  })
})

describe('a route without upstream', () => {
  const at = gatewayBefore(
    startUpstream,
    url => `upstreams: { app: { targets: ['${url}'] } }
routes:
  - { name: inner, path: /a/b, methods: [GET] }
  - { name: posted, path: /a/b, methods: [POST], upstream: app, auth: none }
  - { name: only, path: /only, methods: [PUT], cors: { origins: [https://route.example.com] } }
  - { name: hosted, path: /hosted, hosts: [api.example.com] }
  - { name: rest, path: /*, upstream: app, auth: none }
`,
    {
      server:
        ', cors: { origins: [https://app.example.com] }, forward_auth: { from: [127.0.0.1], path: /ask/it }',
    },
  )
  const code = async (method: string, target: string, host?: string, lines: string[] = []) =>
    codeOf(await send(at.gateway.url, direct({ method, target, lines, ...(host && { host }) }), method))

  it('hides less specific routes, so a client’s request that matches it gets a 404 from the gateway', async () => {
    expect(await code('GET', '/a/b')).toBe('404 route_unknown')
    expect(await code('POST', '/a/b')).toBe('200')
    expect(await code('GET', '/a/c')).toBe('200')
    expect(await code('GET', '/hosted', 'api.example.com')).toBe('404 route_unknown')
    expect(await code('GET', '/hosted')).toBe('200')
    expect(at.upstream.received.splice(0).map(({ url }) => url)).toEqual(['/a/b', '/a/c', '/hosted'])
  })

  it('adds no method to the Allow header for clients, and they get 404 if the path has no other route', async () => {
    const answer = await send(at.gateway.url, direct({ method: 'DELETE', target: '/a/b' }))
    expect([codeOf(answer), value(answer, 'allow')]).toEqual(['405 method_not_allowed', 'POST'])
    expect(await code('GET', '/only')).toBe('404 route_unknown')
    const asked = await send(at.gateway.url, inFields({ method: 'DELETE', target: '/a/b' }, '/ask/it'))
    expect([codeOf(asked), value(asked, 'allow')]).toEqual(['405 method_not_allowed', 'GET, HEAD, POST'])
  })

  it('counts as an unknown path for CORS, so web pages from the origins of `server.cors` can read the 404', async () => {
    const answer = await send(at.gateway.url, direct({ target: '/a/b', lines: [page] }))
    expect([codeOf(answer), value(answer, 'access-control-allow-origin')]).toEqual([
      '404 route_unknown',
      'https://app.example.com',
    ])
    const own = await send(
      at.gateway.url,
      direct({ target: '/only', lines: ['Origin: https://route.example.com'] }),
    )
    expect(value(own, 'access-control-allow-origin')).toBeUndefined()
    const before = await send(
      at.gateway.url,
      direct({
        method: 'OPTIONS',
        target: '/only',
        lines: ['Origin: https://route.example.com', 'Access-Control-Request-Method: PUT'],
      }),
    )
    expect(value(before, 'access-control-allow-origin')).toBeUndefined()
  })

  it('does not change that a question about a preflight for a gateway path gets 404, even with `server.cors`', async () => {
    const question = inFields(
      { method: 'OPTIONS', target: '/api/v1/auth/login', lines: preflight },
      '/ask/it',
    )
    expect(codeOf(await send(at.gateway.url, question))).toBe('404 route_unknown')
  })

  it('does not change that addresses outside `from` get 404 at the path for questions, even with `server.cors`', async () => {
    const outside = (bytes: Buffer, method: string) => send(at.gateway.url, bytes, method, '127.0.0.2')
    for (const target of ['/ask/it', '/ask/it/a/b']) {
      const answer = await outside(direct({ method: 'OPTIONS', target, lines: preflight }), 'OPTIONS')
      expect([codeOf(answer), value(answer, 'access-control-allow-origin')]).toEqual([
        '404 route_unknown',
        'https://app.example.com',
      ])
    }
    expect(at.upstream.received).toEqual([])
  })
})
