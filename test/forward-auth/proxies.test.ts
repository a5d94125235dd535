// Tests the files for nginx and Caddy in deploy/forward-auth. The tests run both proxies. The proxy asks a gateway
// about each request, and forwards the allowed requests to a service.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { corpus, expand, guarded } from '../security/corpus.ts'
import { attacks } from '../security/header-cases.ts'
import { canonical, identityNames } from '../security/identity-names.ts'
import { type ObservedUpstream, type Seen, startObservedUpstream } from '../security/observed-upstream.ts'
import { ask, type RawAnswer, requestBytes, value, values } from '../security/raw-client.ts'
import { spellingsOf } from '../security/spellings.ts'
import { giveKey, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import type { Server } from '../support/servers.ts'
import { describeWithCaddy, describeWithNginx, firstOrAll } from '../support/services.ts'
import { openWebSocket, startWebSocketUpstream } from '../support/web-sockets.ts'
import { path } from './ask.ts'
import { caddyWith, nginxWith, type StartProxy } from './proxies.ts'

const settings = {
  server:
    ', trusted_proxies: [127.0.0.1], cors: { origins: [https://app.example.com], credentials: true }, forward_auth: { from: [127.0.0.1] }',
}
const routes = `plans:
  - { name: free, quotas: { exports: 1/day } }
  - { name: pro, quotas: { exports: unlimited } }
routes:
  - { name: private, path: ${guarded}/* }
  - { name: public, path: /public/*, auth: none }
  - { name: pro, path: /pro/*, plans: [pro] }
  - { name: daily, path: /daily/*, free_daily: true }
  - { name: exports, path: /exports/*, quota: exports }
  - { name: limited, path: /limited/*, rate_limit: 1/1h }
  - { name: email, path: /email, forward_email: true }
  - { name: hosted, path: /hosted, hosts: [api.example.com] }
  - { name: sockets, path: /sockets }
  - { name: rest, path: /rest/*, auth: none, allow_in_path: [double_slash, semicolon, trailing_dot] }
`
const page = 'Origin: https://app.example.com'
const key = 'peage_of_the_user'

interface Behavior {
  /** Returns the body that a client must get for a refusal with this error code. */
  readonly bodyOf: (code: string) => object
  /** Whether the proxy removes headers whose names contain other characters than letters, digits and hyphens. */
  readonly dropsNames: boolean
  /** Starts the proxy with the settings that it needs behind a load balancer on this machine. */
  readonly startBehindBalancer?: StartProxy
}

function behavesAsDocumented(start: StartProxy, { bodyOf, dropsNames, startBehindBalancer }: Behavior): void {
  let gateway: TestGateway
  let service: ObservedUpstream
  let proxy: Server
  let user: TestUser
  let pro: TestUser
  beforeAll(async () => {
    service = await startObservedUpstream(guarded)
    gateway = await startGateway(routes, undefined, settings)
    proxy = await start(gateway.url, service.url)
    user = await newUser(gateway)
    pro = await newUser(gateway, 'pro')
    await giveKey(gateway, user, key)
  })
  beforeEach(() => {
    service.seen.length = 0
    service.reading = 'plain'
    service.answer = undefined
  })
  afterAll(async () => {
    await proxy?.stop()
    await gateway?.stop()
    await service?.close()
  })

  const bearer = ({ access } = user) => `Authorization: Bearer ${access}`
  async function send(
    method: string,
    target: string,
    lines: readonly string[] = [],
    body = '',
  ): Promise<RawAnswer> {
    const answer = await ask(proxy.url, requestBytes(method, target, lines, body), method)
    if (answer === undefined) throw new Error('no response')
    return answer
  }
  const codeOf = (answer: RawAnswer) => `${answer.status} ${value(answer, 'x-peage-error') ?? ''}`.trim()
  const get = async (target: string, ...lines: string[]) => codeOf(await send('GET', target, lines))
  /** Returns the non-empty identity headers that the service received, also in other spellings. */
  const identityIn = ({ fields }: Seen) =>
    Object.fromEntries(fields.filter(([name, text]) => identityNames.has(canonical(name)) && text !== ''))
  const lower = (fields: Record<string, string>) =>
    Object.fromEntries(Object.entries(fields).map(([name, text]) => [name.toLowerCase(), text]))
  const identityOf = ({ id }: TestUser, plan = 'free') => ({ 'x-user-id': String(id), 'x-user-plan': plan })
  const received = (name: string) =>
    service.seen.flatMap(({ fields }) =>
      fields.filter(([other]) => other.toLowerCase() === name).map(([, text]) => text),
    )

  /**
   * Checks each request that the service received. The request must have the identity of `user` or no identity. If the
   * path is guarded, it must have the identity.
   */
  function expectOnlyAllowed(answers: readonly RawAnswer[], plan = 'free'): void {
    for (const seen of service.seen) {
      const identity = identityIn(seen)
      expect([seen.url, {}, identityOf(user, plan)]).toContainEqual(lower(identity))
      expect(Object.keys(identity).filter(name => !identityNames.has(name.toLowerCase()))).toEqual([])
      if (seen.isSecret) expect([seen.url, lower(identity)]).toEqual([seen.url, identityOf(user, plan)])
    }
    for (const answer of answers) {
      if (answer.body.toString().startsWith('secret'))
        expect(answer.body.toString()).toBe(`secret for ${user.id}`)
    }
  }

  it('a public request reaches the service unchanged, without an identity', async () => {
    const answer = await send(
      'POST',
      '/public/A%20b/?q=1&as=nginx',
      ['Content-Length: 5', 'X-Foo: bar'],
      'five!',
    )
    expect(answer.body.toString()).toMatch(/^public for/)
    expect(service.seen).toMatchObject([{ method: 'POST', url: '/public/A%20b/?q=1&as=nginx' }])
    expect(service.seen.map(({ body }) => String(body))).toEqual(['five!'])
    expect([received('x-foo'), service.seen.map(identityIn)]).toEqual([['bar'], [{}]])
  })

  it('an upload with the header Expect reaches the service', async () => {
    const lines = ['Content-Length: 5', 'Expect: 100-continue', bearer()]
    const answer = await send('POST', `${guarded}/x`, lines, 'five!')
    expect(answer.status === 100 || answer.status === 200).toBe(true)
    await expect.poll(() => service.seen.map(({ body }) => String(body))).toEqual(['five!'])
  })

  it('if a request to a guarded path has no credential, the client gets the 401 of the gateway', async () => {
    const answer = await send('GET', `${guarded}/x`)
    expect(codeOf(answer)).toBe('401 token_invalid')
    expect(values(answer, 'www-authenticate')).toEqual(['Bearer'])
    expect(value(answer, 'content-type')).toMatch(/^application\/json/)
    expect(JSON.parse(String(answer.body))).toMatchObject(bodyOf('token_invalid'))
    expect(await get(`${guarded}/x`, 'Authorization: Bearer x')).toBe('401 token_invalid')
    expect(service.seen).toEqual([])
  })

  it('if a request to a guarded path has a credential, the service receives the identity but not the credential', async () => {
    expect(await get(`${guarded}/x?y=z`, bearer(), 'Connection: close')).toBe('200')
    expect(await get(`${guarded}/x`, `X-API-Key: ${key}`)).toBe('200')
    expect(await get(`${guarded}/x`, bearer(pro))).toBe('200')
    expect(service.seen.map(seen => lower(identityIn(seen)))).toEqual([
      identityOf(user),
      identityOf(user),
      identityOf(pro, 'pro'),
    ])
    expect([...received('authorization'), ...received('x-api-key')].filter(text => text !== '')).toEqual([])
    await send('GET', '/email', [bearer()])
    expect(received('x-user-email').at(-1)).toBe(user.email)
  })

  it('a user with a plan that the route does not accept gets the 403 of the gateway', async () => {
    const answer = await send('GET', '/pro/x', [bearer()])
    expect(codeOf(answer)).toBe('403 plan_insufficient')
    expect(JSON.parse(String(answer.body))).toMatchObject(bodyOf('plan_insufficient'))
    expect(await get('/pro/x', bearer(pro))).toBe('200')
    expect(service.seen).toHaveLength(1)
  })

  it('a user whose daily use, quota or rate limit is spent gets a 429 with Retry-After', async () => {
    for (const [target, code] of [
      ['/daily/x', 'daily_limit_reached'],
      ['/exports/x', 'quota_exceeded'],
      ['/limited/x', 'rate_limited'],
    ] as const) {
      expect([target, await get(target, bearer())]).toEqual([target, '200'])
      const refused = await send('GET', target, [bearer()])
      expect([target, codeOf(refused)]).toEqual([target, `429 ${code}`])
      expect(Number(value(refused, 'retry-after'))).toBeGreaterThan(0)
      expect(JSON.parse(String(refused.body))).toMatchObject(bodyOf(code))
    }
    expect(service.seen).toHaveLength(3)
    expect(await gateway.sql('select daily_usage from users where id = $1', [user.id])).toEqual([
      { daily_usage: 1 },
    ])
  })

  it('other refusals reach the client with the status that the gateway chose', async () => {
    expect(await get('/nothing?as=nginx', bearer())).toBe('404 route_unknown')
    expect(await get('/public/x', 'X-API-Key: a', 'X-API-Key: b')).toBe('400 credentials_ambiguous')
    expect(await get(`${guarded}//x`, bearer())).toBe('400 path_invalid')
    expect(await get('/rest//x;y/a.')).toBe('200')
    expect(service.seen.map(({ url }) => url)).toEqual(['/rest//x;y/a.'])
  })

  it('the service answers preflights, and a web page can read refusals', async () => {
    service.answer = (_, response) => response.writeHead(204, { 'x-upstream': 'yes' }).end()
    const preflight = [page, 'Access-Control-Request-Method: GET', 'X-User-Id: 1']
    const answer = await send('OPTIONS', `${guarded}/x`, preflight)
    expect([answer.status, value(answer, 'x-upstream')]).toEqual([204, 'yes'])
    expect(service.seen.map(identityIn)).toEqual([{}])
    const refused = await send('GET', `${guarded}/x`, [page])
    expect(codeOf(refused)).toBe('401 token_invalid')
    expect(value(refused, 'access-control-allow-origin')).toBe('https://app.example.com')
    expect(value(refused, 'access-control-expose-headers')).toContain('X-Peage-Error')
    expect(value(refused, 'access-control-allow-credentials')).toBe('true')
    expect(value(refused, 'vary')).toContain('Origin')
  })

  it.each(['plain', 'lax'] as const)(
    'if the service reads paths with %s rules, no attack path reaches the guarded prefix without an identity',
    async reading => {
      service.reading = reading
      for (const lines of [[], [bearer()]]) {
        const heard: RawAnswer[] = []
        for (const { id, raw_target, raw_target_note } of corpus.paths) {
          const encoding = raw_target_note === undefined ? 'latin1' : 'utf8'
          const target = Buffer.from(raw_target, encoding).toString('latin1')
          const before = service.seen.length
          const answer = await send('GET', target, lines)
          const passed = service.seen.slice(before)
          // If the proxy forwards the request, the service must receive exactly the path of the client.
          if (!/^[a-z]+:/i.test(target))
            expect([id, ...passed.map(({ url }) => url)]).toEqual([id, ...passed.map(() => target)])
          heard.push(answer)
        }
        expectOnlyAllowed(heard)
      }
      expect(service.seen.length).toBeGreaterThan(10)
    },
  )

  it('identity headers of a client do not reach the service in any spelling', async () => {
    const names = [...identityNames].flatMap(name => [
      ...spellingsOf(...name.split('-')),
      `_${name}`,
      `${name}_`,
      name.replace('-', '_'),
      name.replace('-', '--'),
    ])
    let passed = 0
    for (const name of names) {
      for (const [target, more] of [
        ['/public/x', []],
        [`${guarded}/x`, [bearer()]],
      ] as const) {
        service.seen.length = 0
        const answer = await send('GET', target, [...more, `${name}: 999`])
        const isDropped = dropsNames || identityNames.has(name.toLowerCase())
        expect([name, answer.status]).toEqual([name, isDropped ? answer.status : 400])
        // Here, `Connection` names the header. So the proxy may remove the header from the question and from the
        // request to the service.
        await send('GET', target, [...more, `${name}: 999`, `Connection: ${name}`])
        expect([name, service.seen.map(seen => lower(identityIn(seen)))]).toEqual([
          name,
          service.seen.map(() => (more.length === 0 ? {} : identityOf(user))),
        ])
        passed += service.seen.length
      }
    }
    expect(passed).toBeGreaterThan(10)
  })

  it('a client cannot remove the identity by naming identity headers in Connection', async () => {
    for (const options of [
      'X-User-Id',
      'x-user-id, x-user-plan',
      'close, X-User-Id',
      'keep-alive,X-User-Plan',
      'X-Peage-Assertion',
    ]) {
      service.seen.length = 0
      expect([options, await get(`${guarded}/x`, bearer(), `Connection: ${options}`)]).toEqual([
        options,
        '200',
      ])
      expect(service.seen.map(seen => lower(identityIn(seen)))).toEqual([identityOf(user)])
    }
  })

  it('header attacks do not change the identity that the service receives, and no credential reaches the service', async () => {
    const placeholders: Record<string, string> = {
      VALID: user.access,
      OTHER: 'x',
      INVALID: 'invalid',
      REFRESH: user.refresh,
    }
    const heard: RawAnswer[] = []
    for (const attack of attacks) {
      const lines = attack.lines.map(line =>
        expand(line).replace(/<([A-Z]+)>/g, (_, name: string) => placeholders[name] ?? key),
      )
      for (const [target, more] of [
        ['/public/x', []],
        [`${guarded}/x`, [bearer()]],
        [`${guarded}/x`, []],
      ] as const) {
        const isChunked = lines.some(line => /^transfer-encoding:/i.test(line))
        const body = isChunked ? '0\r\nX-User-Id: 999999\r\nX_User_Plan: pro\r\n\r\n' : ''
        const answer = await ask(proxy.url, requestBytes('GET', target, [...more, ...lines], body))
        if (answer === undefined) throw new Error(`no response to ${attack.desc}`)
        heard.push(answer)
      }
    }
    expectOnlyAllowed(heard)
    for (const name of [
      'authorization',
      'x-api-key',
      'x-forwarded-uri',
      'x-forwarded-method',
      'x-original-url',
      'x-rewrite-url',
      'x-http-method-override',
      'x-http-method',
      'x-method-override',
    ])
      expect([name, received(name).filter(text => text !== '')]).toEqual([name, []])
    expect(service.seen.length).toBeGreaterThan(20)
  })

  it('identity headers in trailers do not reach the service', async () => {
    const trailers = '3\r\nabc\r\n0\r\nX-User-Id: 999\r\nx_user_plan: pro\r\nX-Foo: bar\r\n\r\n'
    for (const announced of [
      [],
      ['Trailer: X-User-Id, x_user_plan, X-Foo'],
      ['TE: trailers', 'Trailer: X-User-Id'],
    ]) {
      const lines = ['Transfer-Encoding: chunked', ...announced]
      await send('POST', '/public/x', lines, trailers)
      await send('POST', `${guarded}/x`, [bearer(), ...lines], trailers)
    }
    expect(service.seen.length).toBeGreaterThan(0)
    expect(service.seen.flatMap(({ trailers: received }) => received)).toEqual([])
    expectOnlyAllowed([])
  })

  it('X-Forwarded headers of a client do not change the decision', async () => {
    const forged = [
      'X-Forwarded-Uri: /public/x',
      'X-Forwarded-Method: OPTIONS',
      'X-Forwarded-Host: other.test',
    ]
    for (const lines of [
      forged,
      [...forged, ...forged],
      [...forged, 'Connection: X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host'],
      forged.map(line => line.replace('X-Forwarded-', 'X_Forwarded_')),
    ]) {
      const refused = await get(`${guarded}/x`, ...lines)
      expect([lines, refused]).toEqual([lines, '401 token_invalid'])
      expect([lines, await get('/public/x', ...lines)]).toEqual([lines, '200'])
      expect([lines, await get('/hosted', 'Host: api.example.com', ...lines)]).toEqual([
        lines,
        '401 token_invalid',
      ])
      expect([lines, await get('/hosted', 'Host: other.test', ...lines)]).toEqual([
        lines,
        '404 route_unknown',
      ])
    }
    expect(
      [...received('x-forwarded-uri'), ...received('x-forwarded-method')].filter(text => text !== ''),
    ).toEqual([])
  })

  it('the address in the log is the address of the client, whatever X-Forwarded-For contains', async () => {
    gateway.log.length = 0
    await get('/public/x', 'X-Forwarded-For: 203.0.113.9')
    await get('/public/x', 'X-Forwarded-For: 203.0.113.9', 'Connection: X-Forwarded-For')
    const lines = () => gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    await expect.poll(() => lines().map(({ client }) => client)).toEqual(['127.0.0.1', '127.0.0.1'])
  })

  if (startBehindBalancer !== undefined) {
    it('behind a load balancer, the proxy reads the client address from X-Forwarded-For, but ignores X-Forwarded-Host', async () => {
      const balanced = await startBehindBalancer(gateway.url, service.url)
      gateway.log.length = 0
      try {
        const lines = [bearer(), 'X-Forwarded-For: 203.0.113.9', 'X-Forwarded-Host: api.example.com']
        const refused = await ask(
          balanced.url,
          requestBytes('GET', '/hosted', ['Host: other.test', ...lines]),
        )
        expect(refused?.status).toBe(404)
        expect(service.seen).toEqual([])
        const clients = () => gateway.log.map(line => JSON.parse(line)).filter(({ msg }) => msg === 'request')
        await expect.poll(() => clients().map(({ client }) => client)).toEqual(['203.0.113.9'])
      } finally {
        await balanced.stop()
      }
    })
  }

  it('the service receives the same host as the gateway receives in the question', async () => {
    for (const [target, host] of [
      ['http://api.example.com/hosted', 'other.test'],
      ['http://other.test/hosted', 'api.example.com'],
      ['http://other.test/public/x', 'api.example.com'],
      ['/hosted', 'API.Example.com'],
      ['/hosted', 'api.example.com.'],
    ] as const) {
      service.seen.length = 0
      gateway.log.length = 0
      await get(target, `Host: ${host}`, bearer())
      const asked = gateway.log.map(line => JSON.parse(line)).flatMap(line => line.host ?? [])
      expect([target, host, ...received('host').map(one => one.toLowerCase())]).toEqual([
        target,
        host,
        ...received('host').map(() => String(asked[0]).toLowerCase()),
      ])
    }
  })

  it('no client can send a question to the gateway through the proxy', async () => {
    const forged = [
      'X-Forwarded-Uri: /public/x',
      'X-Forwarded-Method: GET',
      'X-Forwarded-Host: gw.test',
      bearer(),
    ]
    for (const target of [
      path,
      `${path}?as=nginx`,
      `${path}/public/x`,
      `/%2epeage/authorize`,
      `/.Peage/Authorize`,
      `/${path}`,
      `${path}/../../api/v1/auth/login`,
      `${path}/%2e%2e/%2e%2e/api/v1/auth/login`,
      `/api/v1/auth/../../..${path}`,
      `/api/v1/auth/..%2f..%2f..${path}`,
      `/public/..${path}/public/x`,
    ]) {
      const answer = await send('GET', target, forged)
      expect([target, answer.status]).toEqual([
        target,
        expect.toSatisfy(status => [400, 401, 403, 404].includes(status)),
      ])
      expect([target, value(answer, 'x-user-id')]).toEqual([target, undefined])
    }
    expect(service.seen).toEqual([])
  })

  it('the proxy forwards requests for the paths of the gateway to the gateway', async () => {
    const { email, password } = user
    const body = JSON.stringify({ email, password })
    const login = await send('POST', '/api/v1/auth/login', [`Content-Length: ${body.length}`], body)
    expect(JSON.parse(String(login.body))).toMatchObject({ access_token: expect.any(String) })
    expect(await get('/.well-known/jwks.json')).toBe('200')
    expect(await get('/api/v1/user/api-token')).toMatch(/^40[15]/)
    expect(await get('/api/v1/auth/nothing')).toBe('404 route_unknown')
    expect(service.seen).toEqual([])
  })

  it('a request with too large headers is refused', async () => {
    const answer = await send('GET', `${guarded}/x`, [
      bearer(),
      `X-Long: ${'a'.repeat(7_000)}`,
      `X-More: ${'a'.repeat(7_000)}`,
      `X-Other: ${'a'.repeat(7_000)}`,
    ])
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(service.seen).toEqual([])
  })

  it('a WebSocket reaches the service only if the gateway allows the handshake', async () => {
    const sockets = await startWebSocketUpstream()
    const other = await start(gateway.url, sockets.url)
    try {
      await expect(openWebSocket(`${other.url}/sockets`)).rejects.toThrow('401')
      expect(sockets.handshakes).toHaveLength(0)
      const socket = await openWebSocket(`${other.url}/sockets`, {
        token: user.access,
        headers: { 'X-User-Id': '999' },
      })
      socket.socket.send('hello')
      expect(await socket.next()).toBe('hello')
      expect(sockets.handshakes.map(({ headers }) => headers['x-user-id'])).toEqual([String(user.id)])
      socket.socket.close()
    } finally {
      await other.stop()
      await sockets.close()
    }
  })

  it('no request reaches the service while the gateway is down', async () => {
    const other = await start('http://127.0.0.1:1', service.url)
    try {
      for (const target of ['/public/x', `${guarded}/x`]) {
        const answer = await ask(other.url, requestBytes('GET', target, [bearer()]))
        expect(answer?.status).toBeGreaterThanOrEqual(500)
      }
      expect(service.seen).toEqual([])
    } finally {
      await other.stop()
    }
  })
}

describeWithNginx('nginx with deploy/forward-auth/nginx.conf', () => {
  const bodyOf = (code: string) => ({ error: code })
  describe.each(
    firstOrAll([
      [
        'settings that forward every header name',
        '  underscores_in_headers on;\n  ignore_invalid_headers off;\n',
        false,
      ],
      ['the default settings for header names', '', true],
    ] as const),
  )('and %s', (_, settings, dropsNames) => {
    behavesAsDocumented(nginxWith(settings), { bodyOf, dropsNames })
  })
})

describeWithCaddy('Caddy with deploy/forward-auth/Caddyfile', () => {
  behavesAsDocumented(caddyWith(), {
    bodyOf: () => ({ error: expect.any(String) }),
    dropsNames: false,
    // This is tested only for Caddy. If Caddy trusts the load balancer, it keeps the client's X-Forwarded-Host by
    // default.
    startBehindBalancer: caddyWith('trusted_proxies 127.0.0.0/8\n'),
  })
})
