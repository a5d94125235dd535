// Calls every operation of the OpenAPI document on running gateways until each described response was received.
import { request } from 'node:http'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { createDocumentation } from '../../src/composition/api-description.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { type CodeIssuer, startCodeIssuer } from '../support/code-issuer.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { giveIdentities, takePassword } from '../support/identities.ts'
import { codeTo, mailSection } from '../support/mailed.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { type Answer, createChecker, type DocumentText } from './checker.ts'
import { createSignInDriver, signInSettings } from './sign-in.ts'

interface Sent {
  token?: string | undefined
  headers?: Record<string, string | string[]>
  body?: unknown
}

const document = JSON.parse(createDocumentation('0.0.0')) as DocumentText
const checker = createChecker(document)

/** Uses `node:http`, because `fetch` cannot repeat a header or change `Host`. */
function send(
  base: string,
  method: string,
  path: string,
  { token, headers = {}, body }: Sent,
): Promise<Answer> {
  const { hostname, port } = new URL(base)
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const credential = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const length = text === undefined ? {} : { 'content-length': String(Buffer.byteLength(text)) }
  return new Promise((resolve, reject) => {
    const sent = request(
      { hostname, port, method, path, headers: { ...credential, ...length, ...headers } },
      response => {
        let received = ''
        response.setEncoding('utf8').on('data', part => {
          received += part
        })
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text: received }),
        )
      },
    )
    sent.on('error', reject).end(text)
  })
}

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).flatMap(([method, operation]) =>
    operation.operationId === undefined ? [] : [{ method: method.toUpperCase(), path, operation }],
  ),
)
const isOfOperators = ({ path }: { path: string }) => !/^\/(api|\.well-known)\//.test(path)
const asksFor = (scheme: string) =>
  operations.filter(({ operation }) => operation.security.some(one => scheme in one))
const tooLong = { email: 'x'.repeat(70_000), type: 'x'.repeat(70_000) }

describeWithPostgresBinary('the OpenAPI document', () => {
  let postgres: Server
  let upstream: Upstream
  /** A gateway with normal limits. A test at the end stops its Postgres. */
  let gateway: TestGateway
  /** A gateway with very low limits, without an upgrade URL and without an admin token. */
  let tight: TestGateway
  /** A gateway whose admin listener refuses the IP address of this test. */
  let closed: TestGateway
  /**
   * A gateway on the same Postgres as `gateway`. It serves no sign-in with an identity provider before Postgres stops.
   */
  let fresh: TestGateway
  let alpha: CodeIssuer
  let restricted: CodeIssuer
  let signIn: ReturnType<typeof createSignInDriver>
  let guessed: TestUser
  let pro: TestUser
  let free: TestUser
  let gone: TestUser

  /**
   * Sends a request to the client listener or the admin listener, depending on the path. Checks the response against
   * the document.
   */
  async function drive(to: TestGateway, method: string, pattern: string, sent: Sent = {}, target = pattern) {
    const base = isOfOperators({ path: pattern }) ? to.admin : to.url
    const path = target.replace('/providers/{id}/', '/providers/alpha/').replace('{id}', String(free.id))
    const answer = await send(base, method, path, sent)
    checker.check(method, pattern, answer)
    return answer
  }
  const operator = (method: string, pattern: string, sent: Sent = {}, target?: string) =>
    drive(
      gateway,
      method,
      `/admin/v1${pattern}`,
      { token: gateway.adminToken, ...sent },
      target && `/admin/v1${target}`,
    )

  beforeAll(async () => {
    postgres = await startPostgres(inject('postgresBin'))
    upstream = await startUpstream()
    const rest = `
upstreams: { a: { targets: ['${upstream.url}'], health: { path: / }, circuit_breaker: {} } }
routes: [{ path: /a, upstream: a, plans: [pro], rate_limit: 9/1m, max_body: 1KiB, free_daily: true }]`
    alpha = await startCodeIssuer()
    restricted = await startCodeIssuer()
    const { server, auth } = signInSettings(alpha, restricted)
    gateway = await startGateway(
      `${mailSection()}account: { deletion: true }
subscription: { upgrade_url: 'https://pay.example.com/?u={user_id}&p={plan}' }${rest}`,
      { postgres: postgres.url, redis: '' },
      { server, auth: `, common_passwords: refuse${auth}` },
    )
    fresh = await startGateway('', { postgres: postgres.url, redis: '' }, { server, auth })
    tight = await startGateway(`${mailSection()}account: { deletion: true }`, undefined, {
      admin: '',
      server,
      auth: `, hashing: { concurrency: 1, queue: 1, wait: 1ms }${auth}`,
      rateLimits:
        'rate_limits: { register: 5/1m, login_failures: 1/5m, login_failures_per_address: 1/5m, refresh: 1/1m, bad_keys: 1/1m, external: 3/1m }',
    })
    closed = await startGateway('', undefined, {
      admin: ', token: a-token-for-operators-0123456789, allow_from: [10.0.0.0/8]',
    })
    // The identity providers use the real time, so these gateways must use it too.
    for (const { clock } of [gateway, tight, fresh]) clock.now = Date.now
    signIn = createSignInDriver({ gateway, tight, withoutPages: closed, alpha, closed: restricted }, drive)
    guessed = await newUser(tight)
    pro = await newUser(gateway, 'pro')
    free = await newUser(gateway)
    gone = await newUser(gateway, 'pro')
    await gateway.sql('update users set is_active = 0 where id = $1', [gone.id])
  })
  afterAll(async () => {
    await gateway?.stop()
    await tight?.stop()
    await closed?.stop()
    await fresh?.stop()
    await alpha?.close()
    await restricted?.close()
    await upstream?.close()
    await postgres?.stop()
  })

  it('describes the responses for accounts and sessions', async () => {
    const auth = (name: string, body: unknown) => drive(gateway, 'POST', `/api/v1/auth/${name}`, { body })
    const password = 'correct horse battery'
    await auth('register', { email: 'held@example.com', password })
    for (const body of [
      { email: 'held', password },
      { email: 'held@example.com', password: 'short' },
      { email: 'held@example.com', password: 'password1' },
      { email: 'held@example.com', password: 'x'.repeat(1_025) },
      { email: 'held@example.com', password },
      { email: gone.email, password },
    ])
      await auth('register', body)
    const { text } = await auth('login', { email: 'held@example.com', password })
    await auth('login', {})
    await auth('login', { email: 'held@example.com', password: 'wrong' })
    const { refresh_token } = JSON.parse(text)
    for (const body of [
      { refresh_token },
      { refresh_token },
      {},
      { refresh_token: 'x' },
      { refresh_token: gone.refresh },
    ])
      await auth('refresh', body)
    await auth('logout', {})
    const session = await newUser(gateway)
    const change = (current_password: string, new_password: string) =>
      drive(gateway, 'POST', '/api/v1/auth/password', {
        token: session.access,
        body: { current_password, new_password },
      })
    for (const next of ['short', 'x'.repeat(1_025), 'password1', session.password])
      await change(session.password, next)
    await change('wrong', 'another password')
    await change(session.password, 'another password')
    const leaving = await newUser(gateway)
    const leave = () =>
      drive(gateway, 'DELETE', '/api/v1/auth/account', {
        token: leaving.access,
        body: { current_password: leaving.password },
      })
    for (const status of [200, 401]) expect((await leave()).status).toBe(status)
    await drive(closed, 'DELETE', '/api/v1/auth/account')
    const external = await newUser(gateway)
    await giveIdentities(gateway, external, 'google', 'keycloak')
    const remove = (name: string) =>
      drive(
        gateway,
        'DELETE',
        '/api/v1/auth/identities/{id}',
        { token: external.access },
        `/api/v1/auth/identities/${name}`,
      )
    for (const name of ['google', 'google']) await remove(name)
    await takePassword(gateway, external)
    await remove('keycloak')
    for (const path of ['identities', 'account', 'account/export'])
      await drive(gateway, 'GET', `/api/v1/auth/${path}`, { token: external.access })
    for (const [method, name] of [
      ['POST', 'password'],
      ['POST', 'email'],
      ['DELETE', 'account'],
    ] as const) {
      const body = { current_password: 'x', new_password: 'another password', email: 'new@example.org' }
      await drive(gateway, method, `/api/v1/auth/${name}`, { token: external.access, body })
    }
  })

  it('describes the responses for sign-ins with identity providers', () => signIn.describeResponses())

  it('describes the responses for codes that are sent by mail', async () => {
    const auth = (name: string, body: unknown, token?: string) =>
      drive(gateway, 'POST', `/api/v1/auth/${name}`, { body, token })
    const user = await newUser(gateway)
    const other = await newUser(gateway)
    const change = { email: 'held@example.org', current_password: user.password }
    await auth('email/verify/request', {}, user.access)
    await auth('email/verify', { token: (await codeTo(gateway, user.email)).token })
    await auth('email/verify/request', {}, user.access)
    for (const body of [{}, { ...change, current_password: 'wrong' }, change])
      await auth('email', body, user.access)
    const { token } = await codeTo(gateway, change.email)
    await auth('email', { ...change, current_password: other.password }, other.access)
    const rival = await codeTo(gateway, change.email)
    for (const body of [{ token }, { token }, { token: rival.token }])
      await auth('email/confirm', body, user.access)
    for (const email of ['held', change.email]) await auth('password/forgot', { email })
    const reset = await codeTo(gateway, change.email)
    for (const new_password of [
      'short',
      'x'.repeat(1_025),
      'password1',
      'correct horse battery',
      'correct horse battery',
    ])
      await auth('password/reset', { token: reset.token, new_password })
    await auth('email/verify', {})
  })

  it('describes the responses for API keys, webhooks, the upgrade path and the JWKS', async () => {
    const as = (user: TestUser, method: string, path: string, body?: unknown) =>
      drive(gateway, method, path, { token: user.access, body })
    await as(pro, 'POST', '/api/v1/user/api-token')
    await as(pro, 'POST', '/api/v1/user/webhook', { url: 'https://nobody.invalid/hook' })
    await as(pro, 'POST', '/api/v1/user/webhook', { url: 'http://nobody.invalid/hook' })
    await operator('POST', '/alerts', { body: { type: 'x', data: [1], user_id: pro.id } })
    const { deliveries } = JSON.parse((await operator('GET', '/deliveries')).text)
    const retry = (id: number) => operator('POST', '/deliveries/{id}/retry', {}, `/deliveries/${id}/retry`)
    await retry(deliveries[0].id)
    await retry(99_999_999)
    const { text } = await as(pro, 'POST', '/api/v1/user/api-token')
    const key = { headers: { 'x-api-key': String(JSON.parse(text).api_token) } }
    for (const [method, path] of [
      ['GET', '/api/v1/auth/sessions'],
      ['DELETE', '/api/v1/auth/sessions/{id}'],
      ['DELETE', '/api/v1/auth/sessions'],
      ['GET', '/api/v1/auth/account'],
      ['GET', '/api/v1/auth/account/export'],
      ['GET', '/api/v1/auth/usage'],
      ['DELETE', '/api/v1/auth/account'],
      ['POST', '/api/v1/auth/password'],
      ['POST', '/api/v1/auth/email'],
      ['POST', '/api/v1/auth/email/verify/request'],
      ['POST', '/api/v1/auth/email/confirm'],
    ] as const) {
      await as(pro, method, path)
      await drive(gateway, method, path, key)
    }
    await as(pro, 'DELETE', '/api/v1/user/api-token')
    await as(pro, 'DELETE', '/api/v1/user/webhook')
    const keys = '/api/v1/auth/keys'
    const create = (body: object) => as(pro, 'POST', keys, body)
    for (const wrong of [{}, { name: 'a', scopes: [] }, { name: 'a', expires_in_days: 0 }])
      await create(wrong)
    const created = JSON.parse((await create({ name: 'CI', expires_in_days: 1 })).text)
    for (let i = 0; i < 5; i += 1) await create({ name: 'more' })
    await as(pro, 'GET', keys)
    await as(free, 'POST', keys, { name: 'CI' })
    const byKey = { headers: { 'x-api-key': created.key } }
    for (const { method, path } of asksFor('accessToken')) await drive(gateway, method, path, byKey)
    for (let i = 0; i < 2; i += 1)
      await drive(gateway, 'DELETE', `${keys}/{id}`, { token: pro.access }, `${keys}/${created.id}`)
    await as(pro, 'DELETE', keys)
    await retry(deliveries[0].id)
    for (const user of [free, pro]) await as(user, 'GET', '/api/v1/subscription/upgrade')
    await as(free, 'POST', '/api/v1/subscription/upgrade', { plan: 'pro' })
    await as(free, 'POST', '/api/v1/subscription/upgrade', { plan: 'free' })
    await drive(gateway, 'GET', '/.well-known/jwks.json')
  })

  it('describes the responses of the admin API, health checks and metrics', async () => {
    for (const path of [
      '/routes',
      '/plans',
      '/password-hashes',
      '/users',
      '/users/{id}',
      '/users/{id}/sessions',
      '/deliveries',
      '/mails',
    ])
      await operator('GET', path)
    await operator('PATCH', '/users/{id}', { body: { plan: 'free', is_active: 1 } })
    await operator('PATCH', '/users/{id}', { body: { plan: 'gold' } })
    await operator('PATCH', '/users/{id}', { body: { other: 1 } })
    await operator('PATCH', '/users/{id}', { body: tooLong })
    await operator('DELETE', '/users/{id}/sessions')
    const password = 'correct horse battery'
    const email = 'made-by-operators@example.com'
    const created = await operator('POST', '/users', { body: { email, plan: 'pro', email_verified: true } })
    for (const body of [
      { email },
      { email: 'x' },
      { email: 7 },
      { email, other: 1 },
      { email, plan: 'gold' },
      { email, password: 'short' },
      { email, password: 'x'.repeat(1_025) },
      tooLong,
    ])
      await operator('POST', '/users', { body })
    for (const body of [{ email }, { email: 'x' }]) await operator('PATCH', '/users/{id}', { body })
    for (const body of [{ password }, { password: 'short' }, { password: 'x'.repeat(1_025) }, {}, tooLong])
      await operator('POST', '/users/{id}/password', { body })
    for (const body of [undefined, { quota: 'unknown' }, tooLong])
      await operator('POST', '/users/{id}/reset-usage', { body })
    for (const path of [
      '/users/{id}/api-token',
      '/users/{id}/keys',
      '/users/{id}/keys/{key}',
      '/users/{id}/webhook',
    ])
      await operator('DELETE', path)
    const session = '/users/{id}/sessions/{session}'
    await operator('DELETE', session)
    await giveIdentities(gateway, free, 'google')
    await operator('GET', '/users/{id}')
    const identity = '/users/{id}/identities/{provider}'
    for (let i = 0; i < 2; i += 1)
      await operator('DELETE', identity, {}, identity.replace('{provider}', 'google'))
    await operator('DELETE', '/users/{id}', {}, `/users/${JSON.parse(created.text).id}`)
    await operator('POST', '/alerts', { body: {} })
    await operator('POST', '/alerts', { body: tooLong })
    await operator('POST', '/alerts', { body: { type: 'x', user_id: 99_999_999 } })
    for (const [method, path] of [
      ['GET', '/users/{id}'],
      ['PATCH', '/users/{id}'],
      ['GET', '/users/{id}/sessions'],
      ['DELETE', '/users/{id}/sessions'],
      ['DELETE', '/users/{id}/sessions/{session}'],
      ['GET', '/users/{id}/export'],
      ['POST', '/users/{id}/send-reset'],
      ['DELETE', '/users/{id}/api-token'],
      ['DELETE', '/users/{id}/keys'],
      ['DELETE', '/users/{id}/keys/{key}'],
      ['DELETE', '/users/{id}/identities/{provider}'],
      ['DELETE', '/users/{id}/webhook'],
      ['POST', '/users/{id}/reset-usage'],
      ['POST', '/users/{id}/password'],
      ['DELETE', '/users/{id}'],
    ] as const) {
      const body = path.endsWith('/password') ? { password } : method === 'PATCH' ? {} : undefined
      await operator(method, path, { body }, path.replace('{id}', '99999999'))
    }
    for (const query of ['plan=Gold', 'email=%00@x', 'cursor=x'])
      await operator('GET', '/users', {}, `/users?${query}`)
    await operator('GET', '/deliveries', {}, '/deliveries?status=lost')
    await operator('GET', '/mails', {}, '/mails?status=delivered')
    const audit = await operator('GET', '/audit')
    expect(JSON.parse(audit.text).entries.length).toBeGreaterThan(5)
    await operator('GET', '/audit', {}, '/audit?cursor=x')
    await operator('GET', '/users/{id}/export')
    await operator('POST', '/users/{id}/send-reset')
    const mailless = await startGateway('')
    const resetPath = '/admin/v1/users/{id}/send-reset'
    await drive(mailless, 'POST', resetPath, { token: mailless.adminToken })
    await mailless.stop()
    await gateway.sql('update users set is_active = 0 where id = $1', [free.id])
    await operator('POST', '/users/{id}/send-reset')
    await gateway.sql('update users set is_active = 1 where id = $1', [free.id])
    for (const body of [
      { method: 'GET', path: '/a', as: 'pro' },
      { method: 'GET', path: '/a', as: { user_id: 99_999_999 } },
      {},
      { method: 'GET', path: `/${'x'.repeat(70_000)}` },
    ])
      await operator('POST', '/explain', { body })
    await gateway.reload()
    for (const path of ['/configuration', '/overview']) await operator('GET', path)
    for (const path of ['/healthz', '/readyz', '/metrics']) await drive(gateway, 'GET', path)
    await drive(gateway, 'GET', '/openapi.json', { token: gateway.adminToken })
  })

  it('describes the responses for a sign-in to the console', async () => {
    const path = '/console/session'
    const { origin } = new URL(gateway.admin)
    const post = (body: unknown, headers = { origin }) => drive(gateway, 'POST', path, { headers, body })
    const { headers } = await post({ token: gateway.adminToken })
    const cookie = String(headers['set-cookie']).split(';')[0] ?? ''
    await drive(gateway, 'GET', path, { headers: { cookie } })
    await drive(gateway, 'GET', path)
    await post('no object')
    for (let tries = 0; tries < 11; tries += 1) await post({ token: 'not-a-token-of-anybody' })
    for (const method of ['GET', 'POST', 'DELETE']) {
      const headers = { origin: 'https://evil.example', cookie }
      await drive(gateway, method, path, { headers })
      await drive(closed, method, path)
    }
    await drive(gateway, 'DELETE', path, { headers: { origin, cookie } })
  })

  it('describes the refusals that clients get before an endpoint runs', async () => {
    const twice = { 'x-api-key': ['a', 'b'] }
    const mayBeAmbiguous = operations.filter(one => !isOfOperators(one))
    for (const { method, path } of mayBeAmbiguous) await drive(gateway, method, path, { headers: twice })
    for (const { method, path } of mayBeAmbiguous)
      if (!path.endsWith('jwks.json'))
        await drive(gateway, method, path, { token: pro.access, body: tooLong })
    for (const { method, path, operation } of asksFor('accessToken')) {
      await drive(gateway, method, path)
      await drive(gateway, method, path, { token: gone.access })
      if (operation.responses['403'] !== undefined) await drive(gateway, method, path, { token: free.access })
      for (let i = 0; i < 2; i += 1)
        await send(tight.url, method, path, { headers: { 'x-api-key': 'unknown' } })
      await drive(tight, method, path, { headers: { 'x-api-key': 'unknown' } })
    }
    for (const { method, path } of asksFor('operatorToken')) {
      await drive(gateway, method, path, { token: 'not-a-token-of-anybody' })
      await drive(gateway, method, path, { token: gateway.adminToken, headers: { host: 'evil.example' } })
      await drive(gateway, method, path, { headers: { authorization: ['Bearer a', 'Bearer b'] } })
      if (method === 'DELETE' || method === 'POST')
        for (const body of [{ none: 1 }, tooLong])
          await drive(gateway, method, path, { token: gateway.adminToken, body })
      await drive(tight, method, path, { token: gateway.adminToken })
      await drive(closed, method, path, { token: closed.adminToken })
    }
  })

  it('describes the responses to requests that exceed a limit, and the responses of a gateway without an upgrade URL', async () => {
    const auth = (name: string, body: unknown) => drive(tight, 'POST', `/api/v1/auth/${name}`, { body })
    const password = 'correct horse battery'
    const account = { email: 'tight@example.com', password }
    expect((await auth('register', account)).status).toBe(201)
    const { access_token: token } = JSON.parse((await auth('login', account)).text)
    await drive(tight, 'POST', '/api/v1/subscription/upgrade', { token })
    const busy = [1, 2, 3, 4].map(n => auth('register', { email: `busy${n}@example.com`, password }))
    expect((await Promise.all(busy)).map(({ status }) => status)).toContain(503)
    for (const name of ['register', 'login', 'refresh'])
      for (let i = 0; i < 2; i += 1) await auth(name, { email: 'a@b', password: 'x', refresh_token: 'x' })
  })

  it('describes the responses if sign-ins with identity providers exceed a limit', () =>
    signIn.describeLimits())

  it('describes the responses to guessed codes, and the responses of a gateway without a mail server', async () => {
    const { access: token, email } = guessed
    const auth = (name: string, body: unknown = {}) =>
      drive(tight, 'POST', `/api/v1/auth/${name}`, { token, body: { email, ...Object(body) } })
    const new_password = 'correct horse battery'
    for (const name of ['password/reset', 'email/verify', 'email/confirm'])
      for (let i = 0; i < 2; i += 1) await auth(name, { new_password })
    await tight.configure([mailSection(), ''])
    for (const name of ['password/forgot', 'email/verify/request', 'email']) await auth(name)
  })

  it('describes responses that any request can get, in the entry `default` of an operation', async () => {
    const sizes = await send(gateway.url, 'GET', '/.well-known/jwks.json', {
      headers: { a: 'x'.repeat(20_000) },
    })
    expect(sizes.status).toBe(431)
    const lengths = await send(gateway.url, 'GET', '/.well-known/jwks.json', {
      headers: { 'content-length': 'x' },
    })
    expect(lengths.status).toBe(400)
    for (const answer of [sizes, lengths]) checker.check('GET', '/.well-known/jwks.json', answer, 'default')
    const admin = await send(gateway.admin, 'GET', '/healthz', { headers: { a: 'x'.repeat(20_000) } })
    expect(admin.status).toBe(431)
    checker.check('GET', '/healthz', admin, 'default')
  })

  it('allows exactly the request bodies that the gateway accepts', async () => {
    const alert = (user_id: unknown) => ({ type: 'x', user_id })
    const [patch, alerts] = ['/admin/v1/users/{id}', '/admin/v1/alerts']
    const [upgrade, auth] = ['/api/v1/subscription/upgrade', '/api/v1/auth']
    const cases: [
      method: string,
      path: string,
      token: string | undefined,
      taken: object[],
      refused: object[],
    ][] = [
      ['PATCH', patch, gateway.adminToken, [{}, { plan: 'free' }, { is_active: 1 }, { is_active: true }], []],
      ['PATCH', patch, gateway.adminToken, [], [{ plan: 'Gold' }, { plan: null }, { is_active: 2 }]],
      ['PATCH', patch, gateway.adminToken, [], [{ is_active: '1' }, { other: 1 }]],
      [
        'POST',
        alerts,
        gateway.adminToken,
        [alert(free.id), { type: 'x', data: null }],
        [{}, { type: 'x', more: 1 }],
      ],
      ['POST', alerts, gateway.adminToken, [{ type: 'x' }], [alert(null), alert(-1), alert(1.5), alert('1')]],
      ['POST', alerts, gateway.adminToken, [], [{ type: '' }, { type: 1 }, { type: 'x'.repeat(256) }]],
      [
        'POST',
        upgrade,
        free.access,
        [{}, { plan: 'premium' }, { plan: 'pro', more: 1 }],
        [{ plan: 'Pro' }, { plan: 3 }],
      ],
      ['POST', `${auth}/refresh`, undefined, [{ refresh_token: 'x' }], [{}, { refresh_token: 3 }]],
      ['POST', `${auth}/login`, undefined, [{ email: 'a@b', password: 'x' }], [{ email: 'a@b' }]],
      ['POST', `${auth}/login`, undefined, [], [{ email: 'a@b', password: 1 }]],
    ]
    for (const [method, path, token, taken, refused] of cases) {
      for (const body of [...taken, ...refused]) {
        const { status, text } = await drive(gateway, method, path, { token, body })
        const isTaken = taken.includes(body)
        const found = [path, body, status !== 400, checker.takesBody(method, path, body), text]
        expect(found).toEqual([path, body, isTaken, isTaken, text])
      }
    }
  })

  it('describes the responses while Postgres is down', async () => {
    await postgres.kill()
    await signIn.describeWithoutStore(fresh)
    for (const { method, path, operation } of operations) {
      if (operation.responses['503'] === undefined || path.endsWith('/register')) continue
      const ofClients = {
        email: 'a@b',
        password: 'x',
        refresh_token: pro.refresh,
        new_password: 'correct horse battery',
      }
      const ofOperators: Record<string, object> = {
        '/admin/v1/users': { email: 'a@b' },
        '/admin/v1/users/{id}/password': { password: 'correct horse battery' },
        '/admin/v1/alerts': { type: 'x' },
        '/console/session': { token: gateway.adminToken },
        '/admin/v1/explain': { method: 'GET', path: '/a', as: { user_id: 1 } },
      }
      const isAdmin = isOfOperators({ path })
      const token = isAdmin ? gateway.adminToken : pro.access
      const posted = isAdmin ? ofOperators[path] : ofClients
      const sent = method === 'PATCH' ? { plan: 'pro' } : method === 'POST' ? posted : undefined
      const headers: Record<string, string> = isAdmin ? { origin: new URL(gateway.admin).origin } : {}
      await drive(gateway, method, path, { token, headers, body: sent })
      if (operation.security.some(one => 'apiKey' in one))
        await drive(gateway, method, path, { headers: { 'x-api-key': 'peage_away' } })
    }
  })

  it('describes only responses that the tests above received', () => {
    const unseen = checker.described().filter(one => !checker.seen().includes(one))
    expect(unseen).toEqual([])
  })
})
