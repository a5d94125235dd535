// Tests the values that the configuration gets from a valid file, section by section.
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { configOf, linesOf } from './reading.ts'

const upstream = (keys: string) => configOf(`upstreams: { app: { ${keys} } }`).upstreams.app
const route = (keys: string) =>
  configOf(`upstreams: { a: { targets: ["http://a"] } }\nroutes:\n  - { path: /x, upstream: a, ${keys} }`)
    .routes[0]

describe('upstreams', () => {
  it('an upstream gets defaults for the missing keys of its targets, health check and circuit breaker', () => {
    expect(
      upstream(
        'targets: ["http://a", "http://b:81"], health: { path: "/health?deep=1" }, retries: 0, circuit_breaker: {}',
      ),
    ).toMatchObject({
      targets: [
        { url: 'http://a', weight: 100 },
        { url: 'http://b:81', weight: 100 },
      ],
      health: {
        path: '/health?deep=1',
        interval: 5_000,
        timeout: 1_000,
        unhealthy_after: 3,
        healthy_after: 1,
      },
      retries: 0,
      circuit_breaker: { failures: 50, of_at_least: 20, open_for: 10_000 },
    })
  })

  it('an upstream can set resolve, connection_age, split_by and the weights of its targets', () => {
    expect(
      upstream(
        'targets: [{ url: "http://a", weight: 0 }, { url: "HTTP://B/" }], resolve: { every: 1s, family: 6 }, connection_age: 0, split_by: user',
      ),
    ).toMatchObject({
      targets: [
        { url: 'http://a', weight: 0 },
        { url: 'http://b', weight: 100 },
      ],
      resolve: { every: 1_000, most: 32, family: 6 },
      connection_age: 0,
      split_by: 'user',
    })
    expect(upstream('targets: ["http://a"], resolve: false, connection_age: 90s')).toMatchObject({
      resolve: false,
      connection_age: 90_000,
    })
  })
})

describe('routes', () => {
  it('a route may set and remove every header that the gateway does not set itself', () => {
    const request = 'set: { Authorization: "Basic eDp5", X-Env: "" }, remove: [Cookie, X-Forwarded-For]'
    const response =
      'set: { Strict-Transport-Security: max-age=1, Set-Cookie: a=b, x-user-id: "1" }, remove: [Server]'
    expect(route(`headers: { request: { ${request} }, response: { ${response} } }`)?.headers).toEqual({
      request: { set: { Authorization: 'Basic eDp5', 'X-Env': '' }, remove: ['Cookie', 'X-Forwarded-For'] },
      response: {
        set: { 'Strict-Transport-Security': 'max-age=1', 'Set-Cookie': 'a=b', 'x-user-id': '1' },
        remove: ['Server'],
      },
    })
  })

  it('a header value from the environment with a line break is refused, and the message does not contain the value', () => {
    const text = `upstreams: { a: { targets: ["http://a"] } }
routes: [{ path: /x, upstream: a, headers: { request: { set: { x-key: "\${KEY}" } } } }]`
    const [line, ...more] = linesOf(text, { KEY: 'secret\r\nx-user-id: 1' })
    expect(line).toMatch(/^2:64 {2}routes\[0\]\.headers\.request\.set\.x-key {2}(?!.*secret)/)
    expect(more).toEqual([])
  })

  it.each([
    ['100/1m', { limit: 100, windowMs: 60_000 }],
    ['0', null],
    ['"0"', null],
  ])('the rate limit "%s" of a route is parsed as %j', (text, limit) =>
    expect(route(`rate_limit: ${text}`)?.rate_limit).toEqual(limit),
  )

  it('cors has a default for each key except origins', () => {
    expect(configOf('server: { cors: { origins: ["https://a"], credentials: true } }').server.cors).toEqual({
      origins: ['https://a'],
      credentials: true,
      expose_headers: [],
      max_age: 600_000,
    })
    expect(route('cors: { origins: ["*"] }')?.cors?.origins).toEqual(['*'])
  })
})

describe('server.workers', () => {
  const config = (workers: string) =>
    configOf(`server: { workers: ${workers} }\nstorage: { postgres: postgres://db/x, redis: redis://r }`, {
      N: '3',
    })

  it('one worker needs neither Postgres nor Redis', () => {
    expect(configOf('server: { workers: 1 }').server.workers).toBe(1)
  })

  it.each([
    ['1', 1, 2],
    ['2', 2, 2],
    ['"${N}"', 3, 1],
    ['auto', 4, 1],
    ['1024', 1_024, 1],
  ])(
    'on four cores, `workers: %s` means %i processes, each with at most %i simultaneous hashes',
    (workers, count, hashes) => {
      expect(config(workers).server.workers).toBe(count)
      expect(config(workers).auth.hashing.concurrency).toBe(hashes)
    },
  )
})

it('admin.tokens maps names to tokens, and may contain the name "token" if admin.token is not set', () => {
  const [one, other] = ['a-token-of-the-first-operator', 'a-token-of-the-other-operator']
  expect(
    configOf(`admin: { token: ${one}, tokens: { billing: ${other}, off: '', also-off: '' } }`).admin,
  ).toMatchObject({ token: one, tokens: { billing: { token: other, may: 'all' } } })
  expect(configOf(`admin: { tokens: { token: ${one} } }`).admin?.tokens).toEqual({
    token: { token: one, may: 'all' },
  })
})

describe('subscription.upgrade_url', () => {
  it.each([
    '',
    'https://pay.example.com',
    'https://pay.example.com/checkout?user={user_id}&plan={plan}',
    'https://pay.example.com/{plan}/{user_id}/{plan}#{plan}',
    'http://127.0.0.1:9000/pay',
    'HTTPS://Pay.example.com:8443/caf%C3%A9?a=%7Bx%7D',
    'https://[2001:db8::1]/x',
  ])('the address %j from the environment is used unchanged', url => {
    const { subscription } = configOf('subscription: { upgrade_url: "${URL:-}" }', { URL: url })
    expect(subscription.upgrade_url).toBe(url)
  })
})

describe('events', () => {
  const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`
  const events = (url: string, secret = of(24)) =>
    configOf(`events: { url: ${JSON.stringify(url)}, secret: "\${SECRET}" }`, { SECRET: secret }).events

  it('events.types contains all types by default', () => {
    expect(events('https://billing.internal/events')).toEqual({
      url: 'https://billing.internal/events',
      secret: of(24),
      types: [
        'user.created',
        'user.email_changed',
        'user.email_verified',
        'user.plan_changed',
        'user.deactivated',
        'user.activated',
        'user.deleted',
      ],
    })
  })

  it('events are off if events.url is missing or empty', () => {
    expect(configOf('events: {}')).not.toHaveProperty('events')
    expect(configOf(`events: { url: "\${URL:-}", secret: "${of(24)}" }`)).not.toHaveProperty('events')
  })

  it.each(['http://10.0.0.7', 'HTTP://billing:8080/a?b=c', 'https://[::1]/', 'http://localhost/x'])(
    'events.url may use http, a private network, and any port, path and query: %s',
    url => expect(events(url)?.url).toBe(url),
  )

  it.each([24, 32, 64])('the secret of events may have %i bytes', bytes =>
    expect(events('https://a', of(bytes))?.secret).toBe(of(bytes)),
  )
})

describe('mail', () => {
  const mail = (keys: string) =>
    configOf(`mail: { smtp: "smtp://mx", from: "A <a@mail.b.fr>", ${keys} }`).mail

  it('every key of mail except smtp and from has a default', () => {
    expect(configOf('mail: { smtp: log, from: a@b.fr }').mail).toEqual({
      smtp: 'log',
      from: { name: '', address: 'a@b.fr' },
      product: 'b.fr',
      links: {},
      language: 'fr',
      verify_on_register: false,
      notices: true,
      code_ttl: { reset: 1_800_000, verify: 86_400_000, email: 1_800_000 },
      rate_limits: {
        per_email: { limit: 5, windowMs: 3_600_000 },
        per_address: { limit: 30, windowMs: 3_600_000 },
      },
    })
  })

  it('an empty smtp switches mail off, even if other keys are set', () => {
    expect(configOf('mail: { smtp: "${SMTP_URL:-}", language: en }').mail).toBeUndefined()
    expect(configOf('mail: {}').mail).toBeUndefined()
  })

  it.each([
    ['smtps://mx.example.com', { host: 'mx.example.com', port: 465, tls: 'implicit' }],
    ['smtp://MX.example.com', { host: 'mx.example.com', port: 587, tls: 'starttls' }],
    ['smtp://mx:2525/', { host: 'mx', port: 2525, tls: 'starttls' }],
    ['smtp://10.0.0.5', { host: '10.0.0.5', port: 587, tls: 'starttls' }],
    ['smtp://localhost', { host: 'localhost', port: 25, tls: 'unchecked' }],
    ['smtp://127.0.0.2:1025', { host: '127.0.0.2', port: 1025, tls: 'unchecked' }],
    ['smtp://[::1]', { host: '::1', port: 25, tls: 'unchecked' }],
    ['smtps://localhost', { host: 'localhost', port: 465, tls: 'implicit' }],
    ['smtp://mx?tls=off', { host: 'mx', port: 25, tls: 'off' }],
    ['smtp://mx?name=gw.example.com', { host: 'mx', port: 587, tls: 'starttls', name: 'gw.example.com' }],
    [
      'smtps://me%40b.fr:p%2Fa%25:s@mx:466',
      { host: 'mx', port: 466, tls: 'implicit', credentials: { user: 'me@b.fr', password: 'p/a%:s' } },
    ],
  ])(
    'the address %s in mail.smtp is parsed into host, port, TLS mode, name and credentials',
    (smtp, server) => expect(configOf(`mail: { smtp: "${smtp}", from: a@b.fr }`).mail?.smtp).toEqual(server),
  )

  it.each([
    ['Péage <no-reply@example.com>', { name: 'Péage', address: 'no-reply@example.com' }],
    ['"A, B" <a@b.fr>', { name: 'A, B', address: 'a@b.fr' }],
    ['a@b.fr', { name: '', address: 'a@b.fr' }],
  ])('the sender %j is parsed into name and address', (from, sender) =>
    expect(configOf(`mail: { smtp: "smtp://mx", from: ${JSON.stringify(from)} }`).mail?.from).toEqual(sender),
  )

  it.each([
    ['', 'mail.b.fr'],
    ['product: ""', 'mail.b.fr'],
    ['product: " Chez nous "', 'Chez nous'],
  ])(
    'with the keys { %s }, the product is %j (the default is the host of the sender address)',
    (keys, product) => expect(mail(keys)?.product).toBe(product),
  )

  it.each([
    ['help@example.com', 'help@example.com'],
    ['mailto:help@example.com', 'help@example.com'],
    ['https://example.com/help?from=mail#form', 'https://example.com/help?from=mail#form'],
    ['', undefined],
  ])('the contact %j is parsed as %j', (contact, shown) =>
    expect(mail(`contact: "${contact}"`)?.contact).toBe(shown),
  )

  it.each([
    'https://app.example.com/reset#token={token}',
    'http://localhost:3000/r/{token}',
    'http://[::1]/?t={token}',
  ])('the link %s is valid', link => expect(mail(`links: { reset: "${link}" }`)?.links.reset).toBe(link))

  it('the folder mail.templates must contain only UTF-8 text files', () => {
    const folder = mkdtempSync(join(tmpdir(), 'peage-'))
    const text = `mail: { templates: ${JSON.stringify(folder)} }`
    const readFile = (path: string) => (path === 'gateway.yaml' ? text : readFileSync(path, 'utf8'))
    const source = { file: 'gateway.yaml', env: {}, readFile, toServe: true }
    expect(loadConfig(source)).toHaveProperty('config')
    writeFileSync(join(folder, 'reset.html'), Buffer.from([0xff]))
    expect(loadConfig(source)).toMatchObject({
      problems: [
        { line: 1, column: 20, path: 'mail.templates', message: expect.stringContaining('reset.html') },
      ],
    })
  })
})
