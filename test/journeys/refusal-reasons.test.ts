// The log line of every 401, 403 and 429 response of the gateway has a `reason`. The tests read the log of a
// running gateway.
import { KeyObject, randomUUID, sign } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generatePrivateJwk, readPrivateJwk, type SigningKey } from '../../src/identity/keys/signing-key.ts'
import { catalog } from '../../src/refusals/catalog.ts'
import { claimsOf, type Issuer, makeKey, signToken, startIssuer, type TestKey } from '../providers/issuer.ts'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { call, giveKey, newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { handshake } from '../support/web-sockets.ts'

const routes = (upstream: string) => `plans:
  - { name: free, quotas: { exports: 1/month } }
  - { name: premium, quotas: { exports: unlimited } }
  - { name: pro, quotas: { exports: unlimited }, api_keys: 5, webhook: true }
upstreams: { app: { targets: ['${upstream}'] } }
routes:
  - { name: any, path: /any, upstream: app, websocket: true }
  - { name: pro, path: /pro, upstream: app, plans: [pro] }
  - { name: maybe, path: /maybe, upstream: app, auth: optional, plans: [pro] }
  - { name: verified, path: /verified, upstream: app, verified: true }
  - { name: maybe-verified, path: /maybe-verified, upstream: app, auth: optional, verified: true }
  - { name: counted, path: /counted, upstream: app, free_daily: true }
  - { name: exports, path: /exports, upstream: app, quota: exports }
  - { name: scoped, path: /scoped, upstream: app, scope: canary }
  - { name: limited, path: /limited, upstream: app, auth: none, rate_limit: 1/1h }
`

/** The requests contain this text in every value that a client can choose. It must not appear in any log line. */
const canary = 'canary'

let folder: string
let upstream: Upstream
let key: SigningKey
let issuer: Issuer
let issuerKey: TestKey
let gateway: TestGateway
let limited: TestGateway
let closed: TestGateway
let user: TestUser

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'peage-reasons-'))
  const { text } = await generatePrivateJwk('ES256')
  await writeFile(join(folder, 'key.json'), text)
  key = await readPrivateJwk(text)
  upstream = await startUpstream()
  issuerKey = await makeKey('provider')
  issuer = await startIssuer([issuerKey])
  const auth = `, keys: ['${join(folder, 'key.json')}'], logout_ends_access: true`
  const provider = `{ issuer: '${issuer.url}', client_id: client, register: false }`
  gateway = await startGateway(routes(upstream.url), undefined, {
    auth: `${auth}, providers: { other: ${provider} }`,
    admin:
      ", tokens: { boss: 'a-token-for-operators-0123456789', reader: { token: a-token-that-reads-0123456789, may: read } }",
  })
  const limits =
    'register: 1/1h, login_failures: 1/1h, login_failures_per_address: 2/1h, refresh: 1/1h, keys: 1/1h'
  limited = await startGateway(routes(upstream.url), undefined, {
    auth,
    rateLimits: `rate_limits: { ${limits}, bad_keys: 1/1h }`,
  })
  closed = await startGateway(routes(upstream.url), undefined, { auth, admin: ', allow_from: [192.0.2.1]' })
  user = await newUser(gateway)
})
afterAll(async () => {
  await Promise.all([gateway, limited, closed].map(one => one?.stop()))
  await Promise.all([upstream, issuer].map(one => one?.close()))
  await rm(folder, { recursive: true, force: true })
})

type Options = NonNullable<Parameters<typeof call>[3]>

/** Sends a request. @returns its log line, plus the status and error code of the response */
async function logged(
  at: TestGateway,
  base: string,
  method: string,
  path: string,
  options: Options = {},
): Promise<Record<string, unknown>> {
  const id = randomUUID()
  const headers = { ...options.headers, 'x-request-id': id }
  const { status, headers: received } = await call(base, method, path, { ...options, headers })
  return { ...(await lineOf(at, id)), status, code: received.get('x-peage-error') }
}

async function lineOf(at: TestGateway, id: string): Promise<Record<string, unknown>> {
  const find = () =>
    at.log.find(
      line => line.includes(id) && /"msg":"(request|admin)"/.test(line) && line.includes('"status"'),
    )
  await expect.poll(find).toBeDefined()
  const line = find() as string
  expect(line).not.toContain(canary)
  return JSON.parse(line) as Record<string, unknown>
}

const get = (path: string, options: Options = {}) => logged(gateway, gateway.url, 'GET', path, options)
const post = (at: TestGateway, path: string, body: object, options: Options = {}) =>
  logged(at, at.url, 'POST', `/api/v1/auth/${path}`, { ...options, body })
const refresh = (refresh_token: string) => post(gateway, 'refresh', { refresh_token })
const guess = (turn: number) =>
  post(limited, 'login', { email: `${canary}${turn}@example.com`, password: canary })
const admin = (at: TestGateway, method: string, path: string, options: Options = {}) =>
  logged(at, at.admin, method, path, options)
/** Sends a request with these headers to a route that requires a credential. */
const withHeaders = (headers: Record<string, string>) => get('/any', { headers })
const bearer = (make: () => string) => () => get('/any', { token: make() })
const expired = () => token({}, { exp: 1 })

/** Sends `count` requests one after the other. @returns the log line of the last one */
async function last(count: number, request: (turn: number) => Promise<Record<string, unknown>>) {
  for (let turn = 1; turn < count; turn += 1) await request(turn)
  return request(count)
}

function token(header: object = {}, claims: object = {}): string {
  const now = Math.floor(gateway.clock.now() / 1000)
  const head = { alg: 'ES256', typ: 'at+jwt', kid: key.kid, ...header }
  const body = {
    iss: 'peage',
    aud: 'peage',
    sub: String(user.id),
    iat: now,
    exp: now + 60,
    jti: canary,
    ...claims,
  }
  const signed = [head, body].map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(signed), {
    key: KeyObject.from(key.privateKey),
    dsaEncoding: 'ieee-p1363',
  })
  return `${signed}.${signature.toString('base64url')}`
}

/** Returns a token with an invalid signature. The first character of the signature is changed. */
function unsigned(): string {
  const [header, claims, signature = ''] = token().split('.')
  return `${header}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
}

async function ofWebSocket(lines: string[]) {
  const id = randomUUID()
  const connection = new RawConnection(gateway.url)
  connection.write(requestBytes('GET', '/any', [...handshake, `X-Request-Id: ${id}`, ...lines]))
  const answer = await connection.answer()
  connection.close()
  const line = await lineOf(gateway, id)
  return { ...line, status: answer?.status, code: line.decision }
}

async function signedOut(): Promise<TestUser> {
  const other = await newUser(gateway)
  await call(gateway.url, 'POST', '/api/v1/auth/logout', { body: { refresh_token: other.refresh } })
  return other
}

async function withKey(name: string): Promise<string> {
  const text = `peage_${name}`
  await giveKey(gateway, await newUser(gateway), text)
  return text
}

/** Creates a user with a named API key. */
async function newKey(at: TestGateway, options: object) {
  const { access } = await newUser(at, 'pro')
  const { status, body } = await call(at.url, 'POST', '/api/v1/auth/keys', {
    token: access,
    body: { name: canary, ...options },
  })
  expect(status).toBe(201)
  return { access, key: String(body.key), id: String(body.id) }
}

/** Signs in with an ID token that the provider has signed. */
async function sendIdToken(claims: object) {
  const id_token = await signToken(
    issuerKey,
    claimsOf(issuer, gateway.clock.now(), { jti: canary, ...claims }),
  )
  return post(gateway, 'providers/other/token', { id_token })
}

type Code = keyof typeof catalog
type Row = [title: string, code: Code, reason: string, request: () => Promise<Record<string, unknown>>]

const session = '/api/v1/auth/sessions'
const users = '/admin/v1/users'
const keys = '/api/v1/auth/keys'
const unknownKey = { 'x-api-key': `peage_${canary}` }

const rows: Row[] = [
  ['no credential', 'token_invalid', 'missing', () => get('/any')],
  [
    'another authorization scheme',
    'token_invalid',
    'malformed',
    () => withHeaders({ authorization: `Basic ${canary}` }),
  ],
  ['a bearer token that is not a JWT', 'token_invalid', 'malformed', bearer(() => canary)],
  ['an expired token', 'token_invalid', 'expired', bearer(expired)],
  ['a wrong signature', 'token_invalid', 'signature', bearer(unsigned)],
  ['another algorithm', 'token_invalid', 'signature', bearer(() => token({ alg: 'ES384' }))],
  ['another issuer', 'token_invalid', 'issuer', bearer(() => token({}, { iss: canary }))],
  ['another audience', 'token_invalid', 'audience', bearer(() => token({}, { aud: canary }))],
  ['a token of another type', 'token_invalid', 'type', bearer(() => token({ typ: canary }))],
  ['a refresh token as bearer', 'token_invalid', 'type', bearer(() => user.refresh)],
  ['an unknown signing key', 'token_invalid', 'key_unknown', bearer(() => token({ kid: canary }))],
  ['an unknown API key', 'token_invalid', 'unknown', () => withHeaders(unknownKey)],
  [
    'an expired token with an unknown API key',
    'token_invalid',
    'unknown',
    () => get('/any', { token: expired(), headers: unknownKey }),
  ],
  ['a WebSocket without credential', 'token_invalid', 'missing', () => ofWebSocket([])],
  [
    'a WebSocket with an expired token',
    'token_invalid',
    'expired',
    () => ofWebSocket([`Sec-WebSocket-Protocol: peage.bearer.${expired()}`]),
  ],
  [
    'a page of another origin without credential',
    'token_invalid',
    'missing',
    () => withHeaders({ origin: 'https://app.example.com' }),
  ],
  ['a built-in endpoint without credential', 'token_invalid', 'missing', () => get(session)],
  ...['/any', session].map(
    (path): Row => [
      `an ended session at ${path}`,
      'token_invalid',
      'session_ended',
      async () => get(path, { token: (await signedOut()).access }),
    ],
  ),
  [
    'a token of a user that does not exist',
    'user_not_found',
    'user',
    bearer(() => token({}, { sub: '99999' })),
  ],
  [
    'an inactive user',
    'user_not_found',
    'user',
    async () => {
      const other = await newUser(gateway)
      await gateway.sql('update users set is_active = 0 where id = $1', [other.id])
      await gateway.backing.database.query("select pg_notify('peage_changes', 'all')")
      return get('/any', { token: other.access })
    },
  ],
  ['an anonymous client before the plan guard', 'unauthenticated', 'missing', () => get('/maybe')],
  ['an anonymous client before the email guard', 'unauthenticated', 'missing', () => get('/maybe-verified')],
  ['another plan', 'plan_insufficient', 'plan', () => get('/pro', { token: user.access })],
  [
    'another plan at a built-in endpoint',
    'plan_insufficient',
    'plan',
    () => logged(gateway, gateway.url, 'POST', '/api/v1/user/api-token', { token: user.access }),
  ],
  ['an unverified email', 'email_unverified', 'email', () => get('/verified', { token: user.access })],
  [
    'an API key instead of an access token',
    'bearer_required',
    'api_key',
    async () => get(session, { headers: { 'x-api-key': await withKey('of-a-user') } }),
  ],
  [
    'an API key without the scope of the route',
    'scope_insufficient',
    'scope',
    async () => {
      const { key } = await newKey(gateway, { scopes: [canary] })
      return get('/any', { headers: { 'x-api-key': key } })
    },
  ],
  [
    'an expired API key',
    'token_invalid',
    'expired',
    async () => {
      const { key, id } = await newKey(gateway, {})
      await gateway.sql("update api_keys set expires_at = '2000-01-01' where id = $1", [id])
      return get('/any', { headers: { 'x-api-key': key } })
    },
  ],
  [
    'a spent daily limit',
    'daily_limit_reached',
    'limits.free_daily',
    async () => {
      const { access } = await newUser(gateway)
      return last(2, () => get('/counted', { token: access }))
    },
  ],
  [
    'an exhausted quota',
    'quota_exceeded',
    'plans.free.quotas.exports',
    async () => {
      const { access } = await newUser(gateway)
      return last(2, () => get('/exports', { token: access }))
    },
  ],
  [
    'a wrong password',
    'credentials_invalid',
    'credentials',
    () => post(gateway, 'login', { email: user.email, password: canary }),
  ],
  ['an ID token for another client', 'id_token_invalid', 'id_token', () => sendIdToken({ aud: canary })],
  [
    'a used ID token',
    'id_token_invalid',
    'used',
    async () => {
      const claims = { sub: canary }
      await gateway.sql('insert into identities (issuer, sub, user_id) values ($1, $2, $3)', [
        issuer.url,
        canary,
        user.id,
      ])
      return last(2, () => sendIdToken(claims))
    },
  ],
  [
    'an ID token without a verified email',
    'provider_email_unverified',
    'provider_email',
    () => sendIdToken({ email: `${canary}@example.com` }),
  ],
  [
    'an ID token of an unknown person',
    'registration_closed',
    'register',
    () => sendIdToken({ email: `${canary}@example.com`, email_verified: true }),
  ],
  ['a malformed refresh token', 'refresh_token_invalid', 'malformed', () => refresh(canary)],
  ['an access token as refresh token', 'refresh_token_invalid', 'type', () => refresh(user.access)],
  [
    'a refresh token of an ended session',
    'refresh_token_inactive',
    'session_ended',
    async () => refresh((await signedOut()).refresh),
  ],
  [
    'a used refresh token',
    'refresh_token_inactive',
    'used',
    async () => {
      const other = await newUser(gateway)
      return last(2, () => refresh(other.refresh))
    },
  ],
  [
    'the second new API key',
    'rate_limited',
    'auth.rate_limits.keys',
    async () => {
      const { access } = await newKey(limited, {})
      return logged(limited, limited.url, 'POST', keys, { token: access, body: { name: canary } })
    },
  ],
  ...(
    [
      ['routes.limited.rate_limit', 2, () => get('/limited')],
      ['auth.rate_limits.register', 2, () => post(limited, 'register', {})],
      ['auth.rate_limits.login_failures', 2, () => guess(0)],
      ['auth.rate_limits.login_failures_per_address', 3, guess],
      ['auth.rate_limits.refresh', 2, () => post(limited, 'refresh', {})],
      [
        'auth.rate_limits.bad_keys',
        2,
        () => logged(limited, limited.url, 'GET', '/any', { headers: unknownKey }),
      ],
    ] as [string, number, (turn: number) => Promise<Record<string, unknown>>][]
  ).map(
    ([limit, count, request]): Row => [
      `request ${count} under ${limit}`,
      'rate_limited',
      limit,
      () => last(count, request),
    ],
  ),
  ['an operator without token', 'admin_unauthorized', 'missing', () => admin(gateway, 'GET', users)],
  [
    'an operator with another authorization scheme',
    'admin_unauthorized',
    'malformed',
    () => admin(gateway, 'GET', users, { headers: { authorization: `Basic ${canary}`, cookie: 'a=b' } }),
  ],
  [
    'an unknown operator',
    'admin_unauthorized',
    'unknown',
    () => admin(gateway, 'GET', users, { token: canary }),
  ],
  [
    'an ended session of the console',
    'admin_unauthorized',
    'session_ended',
    () => admin(gateway, 'GET', users, { headers: { cookie: `peage-console=${canary}` } }),
  ],
  [
    'a console without cookie',
    'admin_unauthorized',
    'missing',
    () => admin(gateway, 'GET', '/console/session'),
  ],
  [
    'a page of another site on the admin listener',
    'admin_unauthorized',
    'origin',
    () => admin(gateway, 'GET', users, { headers: { origin: `https://${canary}.example` } }),
  ],
  [
    'another role',
    'admin_forbidden',
    'role',
    () =>
      admin(gateway, 'PATCH', `${users}/${user.id}`, { token: 'a-token-that-reads-0123456789', body: {} }),
  ],
  [
    'an address outside admin.allow_from',
    'admin_forbidden',
    'admin.allow_from',
    () => admin(closed, 'GET', users),
  ],
  [
    'too many wrong tokens at the console',
    'rate_limited',
    'console_sign_in',
    async () => {
      const signIn = () =>
        admin(gateway, 'POST', '/console/session', {
          headers: { origin: new URL(gateway.admin).origin },
          body: { token: canary },
        })
      let line = await signIn()
      while (line.status === 401) {
        expect(line.reason).toBe('unknown')
        line = await signIn()
      }
      return line
    },
  ],
  [
    'an API key whose check fails',
    'key_check_failed',
    'check_failed',
    async () => {
      await gateway.sql('alter table api_tokens rename to away')
      const line = await get('/any', { headers: { 'x-api-key': 'peage_another' } })
      await gateway.sql('alter table away rename to api_tokens')
      return line
    },
  ],
]

describe('the log line of a refusal', () => {
  it.each(rows)('due to %s has the error code "%s" and the reason "%s"', async (_, code, reason, request) => {
    const line = await request()
    expect([line.code, line.reason]).toEqual([code, reason])
    if (line.msg === 'request') expect(line.decision).toBe(code)
  })

  it('has the reason no_token if the admin listener has no admin token', async () => {
    const without = await startGateway(routes(upstream.url), undefined, { admin: '' })
    const line = await admin(without, 'GET', '/admin/v1/users')
    await without.stop()
    expect([line.code, line.reason]).toEqual(['admin_disabled', 'no_token'])
  })

  it('has a reason only if the gateway itself refuses with 401, 403 or 429', async () => {
    upstream.answer = (_request, response) => void response.writeHead(403).end()
    const forwarded = await get('/any', { token: user.access })
    upstream.answer = undefined
    expect([forwarded.status, forwarded.decision, forwarded.reason]).toEqual([403, 'forwarded', undefined])
    expect((await get('/nowhere')).reason).toBeUndefined()
  })

  it('is tested above for every error code that has the status 401, 403 or 429', () => {
    const tested = new Set<string>([...rows.map(([, code]) => code), 'admin_disabled'])
    const all = Object.entries(catalog).filter(([, { status }]) => [401, 403, 429].includes(status))
    expect(all.map(([code]) => code).filter(code => !tested.has(code))).toEqual([])
  })
})
