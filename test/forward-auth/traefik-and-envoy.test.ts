// Tests the files for Traefik and Envoy in deploy/forward-auth. The proxies do not run. Instead, the tests build the
// questions (docs/forward-auth.md) that these proxies would send.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documentsOf, type Manifest, yamlOf } from '../deploy/read.ts'
import { corpus, guarded } from '../security/corpus.ts'
import { canonical, identityNames } from '../security/identity-names.ts'
import { type RawAnswer, requestBytes, value } from '../security/raw-client.ts'
import { spellingsOf } from '../security/spellings.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { codeOf, path, send } from './ask.ts'

const dynamic = yamlOf('deploy/forward-auth/traefik/dynamic.yaml').http
const [envoy] = documentsOf('deploy/forward-auth/envoy.yaml')
const manager = envoy.static_resources.listeners[0].filter_chains[0].filters[0].typed_config
const extAuthz = manager.http_filters[0].typed_config
const envoyRoutes: Manifest[] = manager.route_config.virtual_hosts[0].routes

type Field = readonly [name: string, value: string]

interface ClientRequest {
  readonly method: string
  readonly target: string
  readonly host: string
  readonly fields: readonly Field[]
}

interface Proxy {
  /** Returns the bytes of the question that the proxy sends about the request. */
  question(request: ClientRequest): Buffer
  /** Returns the headers that the proxy sends to the service after this response of the gateway. */
  toService(request: ClientRequest, answer: RawAnswer): Field[]
}

const named = (fields: readonly Field[], names: readonly string[]) =>
  fields.filter(([name]) => names.includes(name.toLowerCase()))
const without = (fields: readonly Field[], names: readonly string[]) =>
  fields.filter(([name]) => !names.includes(name.toLowerCase()))
const keysOf = (middleware: string) =>
  Object.keys(dynamic.middlewares[middleware].headers.customRequestHeaders).map(name => name.toLowerCase())
const linesOf = (fields: readonly Field[]) => fields.map(([name, text]) => `${name}: ${text}`)
const hopByHop = [
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
]
const forwarded = [
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-server',
  'x-real-ip',
]

/** Returns the headers without those that `Connection` names. Both proxies remove these headers first. */
function nominated(fields: readonly Field[]): Field[] {
  const names = named(fields, ['connection']).flatMap(([, text]) => text.toLowerCase().split(/, */))
  return without(fields, names)
}

/** Traefik 3 with `trustForwardHeader: false`. Its question is a GET without a body, with the client's headers. */
const traefik: Proxy = {
  question({ method, target, host, fields }) {
    const own: Field[] = [
      ['X-Forwarded-For', '203.0.113.9'],
      ['X-Forwarded-Host', host],
      ['X-Forwarded-Method', method],
      ['X-Forwarded-Port', '80'],
      ['X-Forwarded-Proto', 'http'],
      ['X-Forwarded-Server', 'traefik'],
      ['X-Forwarded-Uri', target],
      ['X-Real-Ip', '203.0.113.9'],
    ]
    const replaced = own.map(([name]) => name.toLowerCase())
    const passed = without(nominated(fields), [
      ...keysOf('without-client-identity'),
      ...hopByHop,
      ...replaced,
    ])
    const address = new URL(dynamic.middlewares.peage.forwardAuth.address)
    return requestBytes('GET', address.pathname, [
      `Host: ${address.host}`,
      'User-Agent: Go-http-client/1.1',
      ...linesOf(passed),
      ...linesOf(own),
      'Accept-Encoding: gzip',
    ])
  },
  toService({ fields }, answer) {
    const copied: string[] = dynamic.middlewares.peage.forwardAuth.authResponseHeaders
    const passed = without(nominated(fields), [
      ...keysOf('without-client-identity'),
      ...copied.map(name => name.toLowerCase()),
      ...forwarded,
    ])
    const identity = copied.map((name): Field => [name, value(answer, name.toLowerCase()) ?? 'missing'])
    return without([...passed, ...identity], keysOf('without-credentials'))
  },
}

/**
 * Envoy 1.26 or later. Its question has the client's method, host and path. It has an empty body, and only the headers
 * in `allowed_headers`.
 */
const envoyProxy: Proxy = {
  question({ method, target, host, fields }) {
    const patterns: { exact?: string; safe_regex?: { regex: string } }[] = extAuthz.allowed_headers.patterns
    const isAllowed = ([name]: Field) =>
      patterns.some(({ exact, safe_regex }) =>
        exact === undefined ? new RegExp(`^(?:${safe_regex?.regex})$`).test(name) : exact === name,
      )
    const passed = received(fields).filter(isAllowed)
    return requestBytes(method, extAuthz.http_service.path_prefix + target, [
      `host: ${host}`,
      'content-length: 0',
      ...linesOf(passed),
      'x-envoy-internal: true',
      'x-forwarded-for: 127.0.0.1',
      'x-envoy-expected-rq-timeout-ms: 10000',
    ])
  },
  toService({ fields }, answer) {
    const allowed: { exact: string }[] =
      extAuthz.http_service.authorization_response.allowed_upstream_headers.patterns
    const names = allowed.map(({ exact }) => exact)
    const identity = names.map((name): Field => [name, value(answer, name) ?? 'missing'])
    const passed = [...without(received(fields), names), ...identity]
    return without(passed, envoyRoutes.at(-1).request_headers_to_remove)
  },
}

/**
 * Returns the client's headers as Envoy changes them first. Envoy removes the headers in
 * `early_header_mutation_extensions`, and appends the client's address to X-Forwarded-For.
 */
function received(fields: readonly Field[]): Field[] {
  const [early] = manager.early_header_mutation_extensions
  const removed: string[] = early.typed_config.mutations.map(({ remove }: { remove: string }) => remove)
  const lower = nominated(fields).map(([name, text]): Field => [name.toLowerCase(), text])
  const before = named(lower, ['x-forwarded-for']).map(([, text]) => `${text},`)
  const others = without(lower, [...removed, ...hopByHop, 'x-forwarded-for'])
  return [...others, ['x-forwarded-for', `${before.join('')}203.0.113.9`]]
}

describe.each([
  ['Traefik', traefik],
  ['Envoy', envoyProxy],
] as const)('%s, with its file in deploy/forward-auth', (_, proxy) => {
  let gateway: TestGateway
  let user: TestUser
  beforeAll(async () => {
    gateway = await startGateway(
      `routes:
  - { name: private, path: ${guarded}/* }
  - { name: public, path: /public/*, auth: none }
  - { name: daily, path: /daily/*, free_daily: true }
  - { name: posted, path: /posted, auth: none, methods: [POST] }
  - { name: hosted, path: /hosted, auth: none, hosts: [api.example.com], cors: { origins: [https://app.example.com] } }
`,
      undefined,
      { server: ', forward_auth: { from: [127.0.0.1] }' },
    )
    user = await newUser(gateway)
  })
  afterAll(() => gateway?.stop())

  async function ask(request: Partial<ClientRequest>) {
    const whole = { method: 'GET', target: '/public/x', host: 'api.example.com', fields: [], ...request }
    const answer = await send(gateway.url, proxy.question(whole), whole.method)
    const isAllowed = answer.status === 200
    return { answer, fields: isAllowed ? proxy.toService(whole, answer) : undefined }
  }
  const bearer = (): Field => ['Authorization', `Bearer ${user.access}`]
  const identityIn = (fields: readonly Field[] = []) =>
    Object.fromEntries(
      fields
        .filter(([name, text]) => identityNames.has(canonical(name)) && text !== '')
        .map(([name, text]) => [name.toLowerCase(), text]),
    )
  const own = () => ({ 'x-user-id': String(user.id), 'x-user-plan': 'free' })

  it('gets a 200 with the identity, or a refusal of the gateway', async () => {
    const allowed = await ask({ target: `${guarded}/x?y=1`, fields: [bearer()] })
    expect([codeOf(allowed.answer), identityIn(allowed.fields)]).toEqual(['200', own()])
    expect(named(allowed.fields ?? [], ['authorization', 'x-api-key'])).toEqual([])
    expect(identityIn((await ask({})).fields)).toEqual({})
    expect(codeOf((await ask({ target: `${guarded}/x` })).answer)).toBe('401 token_invalid')
    expect(codeOf((await ask({ target: '/nothing?as=nginx' })).answer)).toBe('404 route_unknown')
    expect(codeOf((await ask({ target: '/daily/x', fields: [bearer()] })).answer)).toBe('200')
    const refused = await ask({ target: '/daily/x', fields: [bearer()] })
    expect(codeOf(refused.answer)).toBe('429 daily_limit_reached')
    expect(Number(value(refused.answer, 'retry-after'))).toBeGreaterThan(0)
  })

  it('sends the method and the host of the client in the question', async () => {
    expect(codeOf((await ask({ method: 'POST', target: '/posted' })).answer)).toBe('200')
    expect(codeOf((await ask({ target: '/posted' })).answer)).toBe('405 method_not_allowed')
    expect(codeOf((await ask({ target: '/hosted' })).answer)).toBe('200')
    expect(codeOf((await ask({ target: '/hosted', host: 'other.test' })).answer)).toBe('404 route_unknown')
  })

  it('sends the address of the client in the question', async () => {
    gateway.log.length = 0
    await ask({ fields: [['X-Forwarded-For', '198.51.100.1']] })
    const clients = () => gateway.log.map(line => JSON.parse(line)).flatMap(({ client }) => client ?? [])
    await expect.poll(clients).toEqual(['203.0.113.9'])
  })

  it('sends the CORS headers of the client in the question', async () => {
    const fields: Field[] = [
      ['Origin', 'https://app.example.com'],
      ['Access-Control-Request-Method', 'GET'],
    ]
    const { answer } = await ask({ method: 'OPTIONS', target: '/hosted', fields })
    expect([answer.status, value(answer, 'access-control-allow-origin')]).toEqual([
      204,
      'https://app.example.com',
    ])
  })

  it('lets no identity header of a client reach the service, in any spelling', async () => {
    for (const exact of identityNames) {
      for (const name of [
        exact,
        ...spellingsOf(...exact.split('-')),
        `_${exact}`,
        `${exact}_`,
        exact.replace('-', '__'),
      ]) {
        for (const connection of [[], [['Connection', name] as const]]) {
          const { answer, fields } = await ask({
            target: `${guarded}/x`,
            fields: [bearer(), [name, '999'], ...connection],
          })
          const isKept = !identityNames.has(name.toLowerCase()) && connection.length === 0
          expect([name, answer.status]).toEqual([name, isKept ? 400 : 200])
          if (fields !== undefined) expect([name, identityIn(fields)]).toEqual([name, own()])
        }
      }
    }
  })

  it('uses no X-Forwarded header of a client in the question, and does not forward these headers to the service', async () => {
    const forged: Field[] = [
      ['X-Forwarded-Uri', '/public/x'],
      ['X-Forwarded-Method', 'OPTIONS'],
      ['X-Forwarded-Host', 'api.example.com'],
    ]
    for (const fields of [
      forged,
      [...forged, ...forged],
      [...forged, ['Connection', 'X-Forwarded-Uri'] as const],
    ]) {
      expect(codeOf((await ask({ target: `${guarded}/x`, fields })).answer)).toBe('401 token_invalid')
      expect(codeOf((await ask({ target: '/hosted', host: 'other.test', fields })).answer)).toBe(
        '404 route_unknown',
      )
      const allowed = await ask({ fields })
      expect(
        named(allowed.fields ?? [], ['x-forwarded-uri', 'x-forwarded-method', 'x-forwarded-host']),
      ).toEqual([])
    }
  })

  it('gets no 200 for an attack path that would reach the guarded prefix', async () => {
    for (const { id, raw_target, raw_target_note, allowed_status } of corpus.paths) {
      const target = Buffer.from(raw_target, raw_target_note === undefined ? 'latin1' : 'utf8').toString(
        'latin1',
      )
      if (!target.startsWith('/')) continue
      const { answer } = await ask({ target })
      const expected = [...allowed_status, ...(target.split('?', 1)[0]?.includes('//') ? [400] : [])]
      expect([id, expected]).toEqual([id, expect.arrayContaining([answer.status])])
    }
  })

  it('gets 404 if the client requests the path for questions or another path of the gateway', async () => {
    for (const target of [path, `${path}/public/x`, '/api/v1/auth/login'])
      expect(codeOf((await ask({ target, fields: [bearer()] })).answer)).toBe('404 route_unknown')
  })
})
