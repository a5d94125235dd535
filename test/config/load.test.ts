// The configuration that results from a file: every default, every unit, every name.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { configOf, linesOf, load } from './reading.ts'

const SECOND = 1_000
const MINUTE = 60_000
const DAY = 86_400_000

const DEFAULTS = {
  server: {
    listen: { host: '0.0.0.0', port: 8080 },
    workers: 1,
    trusted_proxies: [],
    drain_timeout: 10 * SECOND,
    timeouts: { headers: 10 * SECOND, body_idle: 30 * SECOND, keep_alive: 65 * SECOND },
    log: { level: 'info', requests: true },
  },
  storage: { postgres: '', postgres_listen: '', pool: 10, redis: '', data_dir: './data' },
  auth: {
    issuer: 'peage',
    audience: 'peage',
    access_token_ttl: 15 * MINUTE,
    refresh_token_ttl: 30 * DAY,
    session_max: 0,
    logout_ends_access: false,
    refresh_reuse: 'reject',
    common_passwords: 'allow',
    keys: [],
    key_secret: '',
    key_secret_old: '',
    hashing: { concurrency: 2, queue: 64, wait: 5 * SECOND },
    remember: { users: 100_000, tokens: 50_000 },
    rate_limits: {
      register: { limit: 300, windowMs: MINUTE },
      login_failures: { limit: 20, windowMs: 5 * MINUTE },
      login_failures_per_address: { limit: 300, windowMs: 5 * MINUTE },
      refresh: { limit: 600, windowMs: MINUTE },
      bad_keys: { limit: 300, windowMs: MINUTE },
    },
  },
  account: { deletion: false },
  limits: { free_daily: 1 },
  subscription: { upgrade_url: '' },
  webhooks: { allow_private_networks: false, timeout: 10 * SECOND, retention: 30 * DAY },
  upstreams: {},
  routes: [],
  tests: [],
}

describe('defaults', () => {
  it('are those of the contract, lifetimes and limits those of the spec (§8), and admin is off', () => {
    expect(configOf('routes: []')).toEqual(DEFAULTS)
    expect(configOf('routes: []')).not.toHaveProperty('admin')
  })

  it('hold for a section whose keys are all commented out', () => {
    expect(configOf('server:\n  # listen: x\nauth:\n  hashing:\nupstreams:\nroutes:\n')).toEqual(DEFAULTS)
  })

  it('hold for a key without a value that may be empty', () => {
    expect(
      configOf(
        'storage:\n  postgres:\n  postgres_listen:\n  redis:\nauth:\n  key_secret:\n  key_secret_old:\nsubscription:\n  upgrade_url:\n',
      ),
    ).toEqual(DEFAULTS)
    expect(configOf('admin:\n  token:\n').admin).toEqual(configOf('admin: {}').admin)
    expect(configOf('mail:\n  smtp:\n  from:\nevents:\n  url:\n  secret:\n')).toEqual(DEFAULTS)
  })

  it('of one load do not leak into the next', () => {
    const first = configOf('routes: []')
    first.server.trusted_proxies.push('10.0.0.1')
    first.auth.rate_limits.register = null
    expect(configOf('routes: []')).toEqual(DEFAULTS)
  })

  it('of admin hold where the section is there', () => {
    expect(configOf('admin: {}').admin).toEqual({
      listen: { host: '127.0.0.1', port: 8081 },
      token: '',
      tokens: {},
      console: true,
    })
  })

  it('of upstreams and routes are filled in', () => {
    const { upstreams, routes } = configOf(
      'upstreams: { a: { targets: ["http://A:80/"] } }\nroutes: [{ path: /x, upstream: a }]',
    )
    expect(upstreams).toEqual({
      a: {
        targets: [{ url: 'http://a', weight: 100 }],
        resolve: { every: 10 * SECOND, most: 32, family: 'auto' },
        connection_age: 5 * MINUTE,
        split_by: 'request',
        timeouts: { connect: SECOND, response: 30 * SECOND, idle: 5 * MINUTE },
        retries: 1,
        connections: 128,
      },
    })
    expect(routes).toEqual([
      {
        name: 'x',
        path: '/x',
        hosts: [],
        upstream: 'a',
        auth: 'required',
        verified: false,
        free_daily: false,
        forward_credentials: false,
        identity_assertion: false,
        forward_email: false,
        allow_in_path: [],
        websocket: false,
      },
    ])
  })
})

it('every value is decoded', () => {
  const config = configOf(`
server:
  listen: "[::1]:0"
  trusted_proxies: [10.0.0.0/8, ::1]
  drain_timeout: 250ms
  log: { level: silent, requests: false }
admin: { listen: localhost:9, token: 0123456789abcdef, tokens: { ops: "", ci: { token: fedcba9876543210, may: read } }, allow_from: [10.0.0.0/8, "::1"] }
storage: { redis: { sentinels: [a:1, "redis://:p@b:2"], name: main }, postgres: postgres://db/x, pool: 3 }
auth:
  access_token_ttl: 1s
  hashing: { concurrency: 1 }
  rate_limits: { register: 0, refresh: "0", bad_keys: 5/2h }
limits: { free_daily: 3 }
subscription: { upgrade_url: "https://pay.example.com/to/{plan}?user={user_id}" }
webhooks: { allow_private_networks: true, timeout: 500ms, retention: 2d }
upstreams: { a: { targets: [https://a:8443], timeouts: { idle: 1h } } }
routes:
  - path: /x/:id/*
    name: x
    upstream: a
    methods: [GET, M-SEARCH]
    hosts: [API.example.com.:443]
    auth: optional
    plans: [pro, premium]
    rewrite: /y/*
    timeout: 5s
    max_body: 10MiB
`)
  expect(config.server).toMatchObject({
    listen: { host: '::1', port: 0 },
    trusted_proxies: ['10.0.0.0/8', '::1'],
    drain_timeout: 250,
    log: { level: 'silent', requests: false },
  })
  expect(config.admin).toEqual({
    listen: { host: 'localhost', port: 9 },
    token: '0123456789abcdef',
    tokens: { ops: { token: '', may: 'all' }, ci: { token: 'fedcba9876543210', may: 'read' } },
    console: true,
    allow_from: ['10.0.0.0/8', '::1'],
  })
  expect(config.storage).toMatchObject({
    postgres: 'postgres://db/x',
    pool: 3,
    redis: { sentinels: ['redis://a:1', 'redis://:p@b:2'], name: 'main' },
  })
  expect(config.auth).toMatchObject({
    access_token_ttl: SECOND,
    hashing: { concurrency: 1 },
    rate_limits: { register: null, refresh: null, bad_keys: { limit: 5, windowMs: 7_200_000 } },
  })
  expect(config.limits.free_daily).toBe(3)
  expect(config.subscription.upgrade_url).toBe('https://pay.example.com/to/{plan}?user={user_id}')
  expect(config.webhooks).toEqual({ allow_private_networks: true, timeout: 500, retention: 2 * DAY })
  expect(config.upstreams.a).toMatchObject({
    targets: [{ url: 'https://a:8443', weight: 100 }],
    timeouts: { idle: 3_600_000 },
  })
  expect(config.routes).toEqual([
    {
      name: 'x',
      path: '/x/:id/*',
      methods: ['GET', 'M-SEARCH'],
      hosts: ['api.example.com'],
      upstream: 'a',
      auth: 'optional',
      plans: ['pro', 'premium'],
      verified: false,
      free_daily: false,
      rewrite: '/y/*',
      forward_credentials: false,
      identity_assertion: false,
      forward_email: false,
      allow_in_path: [],
      websocket: false,
      timeout: 5 * SECOND,
      max_body: 10_485_760,
    },
  ])
})

it.each(['0', '0s', '"0"', '0d'])('%s is no limit of a connection’s age and of a session', none => {
  const { auth, upstreams } = configOf(
    `auth: { session_max: ${none} }\nupstreams: { a: { targets: ["http://a"], connection_age: ${none} } }`,
  )
  expect([auth.session_max, upstreams.a?.connection_age]).toEqual([0, 0])
})

it.each([
  ['', ''],
  ['redis://r', 'redis://r'],
  ['{ cluster: [a:1, rediss://b:2] }', { cluster: ['redis://a:1', 'rediss://b:2'] }],
])('storage.redis: %s', (written, redis) => {
  expect(configOf(`storage:\n  redis: ${written || '""'}`).storage.redis).toEqual(redis)
})

it('a route without a name is named after its path, and never as another is', () => {
  const paths = ['/api/v1/Courses/*', '/:id', '/', '/*', '/api/v1/Courses', '/caf%C3%A9']
  const declared = paths.map(path => `  - { path: "${path}", upstream: a }`)
  const text = [
    'upstreams: { a: { targets: ["http://a"] } }',
    'routes:',
    ...declared,
    '  - { path: /z, upstream: a, name: root-2 }',
  ]
  expect(configOf(text.join('\n')).routes.map(route => route.name)).toEqual([
    'api-v1-Courses',
    'id',
    'root',
    'root-3',
    'api-v1-Courses-2',
    'caf-C3-A9',
    'root-2',
  ])
})

describe('YAML', () => {
  it('aliases and merge keys work, and what a mapping says itself wins', () => {
    const { routes } = configOf(`
upstreams: { a: { targets: ["http://a"] } }
routes:
  - &base { path: /x, upstream: a, methods: &m [GET] }
  - { <<: *base, path: /y, methods: *m }
  - <<: [{ path: /z, auth: none }, *base]
`)
    expect(routes.map(({ path, methods, auth, upstream }) => ({ path, methods, auth, upstream }))).toEqual([
      { path: '/x', methods: ['GET'], auth: 'required', upstream: 'a' },
      { path: '/y', methods: ['GET'], auth: 'required', upstream: 'a' },
      { path: '/z', methods: ['GET'], auth: 'none', upstream: 'a' },
    ])
  })

  it('a problem behind an alias is one line: at the alias where only its use is wrong, else where it is written', () => {
    expect(linesOf('storage: { pool: &n 5 }\nauth: { issuer: *n }')).toEqual([
      '2:17  auth.issuer  must be a name, in quotes',
    ])
    expect(linesOf('upstreams:\n  a: &a { targets: [x] }\n  b: *a\n')).toEqual([
      expect.stringMatching(/^2:21 {2}upstreams\.a\.targets\[0\]/),
    ])
  })

  it.each([
    ['auth: *nope', '1:7  auth  the alias names no anchor that stands before it'],
    ['auth: &a { hashing: *a }', '1:21  auth.hashing  the alias stands inside what it names'],
    ['auth: &a { <<: *a }', '1:10  auth  can merge (<<) only mappings that stand before it'],
    ['auth: { <<: 7 }', '1:7  auth  can merge (<<) only mappings that stand before it'],
  ])('%s is refused', (text, line) => expect(linesOf(text)).toEqual([line]))

  it('a document that grows without end through aliases is refused quickly', () => {
    for (const step of ['[*L, *L, *L, *L, *L, *L, *L, *L]', '{ <<: [*L, *L, *L, *L, *L, *L, *L, *L] }']) {
      const levels = Array.from(
        { length: 12 },
        (_, level) => `l${level + 1}: &l${level + 1} ${step.replaceAll('*L', `*l${level}`)}`,
      )
      const started = performance.now()
      expect(linesOf(['l0: &l0 {}', ...levels].join('\n'))).toContainEqual(
        expect.stringContaining('aliases stand for too many values'),
      )
      expect(performance.now() - started).toBeLessThan(5_000)
    }
  })

  it('a document that nests too deep for the stack is refused, with aliases or without', () => {
    for (const opening of ['[', '{ a: ', '- ', '? ', '[? ']) {
      expect(linesOf(`auth:\n  ${opening.repeat(20_000)}`)).toEqual([
        expect.stringMatching(/^2:\d+ {2}\(file\) {2}nests more than 100 levels deep$/),
      ])
    }
    const chain = Array.from({ length: 5_000 }, (_, level) => `l${level + 1}: &l${level + 1} [*l${level}]`)
    for (const last of ['x: *l5000', 'x: { <<: *l5000 }']) {
      expect(linesOf(['l0: &l0 {}', ...chain, last].join('\n')).length).toBeGreaterThan(0)
    }
  })

  it('a %YAML 1.1 directive does not bring back its booleans and dates', () => {
    expect(configOf('%YAML 1.1\n---\nauth: { issuer: yes, audience: 2001-01-01 }').auth).toMatchObject({
      issuer: 'yes',
      audience: '2001-01-01',
    })
  })

  it('no key of the file reaches a prototype', () => {
    load(
      '__proto__: { polluted: 1 }\nupstreams: { constructor: { targets: ["http://a"] } }\nserver: { __proto__: { polluted: 1 } }',
    )
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
    expect(
      configOf(
        'upstreams: { constructor: { targets: ["http://a"] } }\nroutes: [{ path: /x, upstream: constructor }]',
      ).upstreams.constructor,
    ).toMatchObject({ targets: [{ url: 'http://a', weight: 100 }] })
  })

  it('a byte order mark and CRLF move no column', () => {
    expect(linesOf('\uFEFFservr: 1\r\nlimits:\r\n  x: 1\r\n')).toEqual([
      expect.stringMatching(/^1:1 {2}servr/),
      expect.stringMatching(/^3:3 {2}limits\.x/),
    ])
  })
})

it('reads from disk, relative to nothing but the process, and says of a missing file that it is missing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'peage-'))
  try {
    const file = join(folder, 'gateway.yaml')
    writeFileSync(join(folder, 'secret'), 'a s3cret of tests\n')
    writeFileSync(file, `auth:\n  key_secret: \${file:${join(folder, 'secret')}}\n`)
    expect(loadConfig({ file, env: {} })).toMatchObject({
      config: { auth: { key_secret: 'a s3cret of tests' } },
    })
    expect(loadConfig({ file: `${file}.not`, env: {} })).toEqual({
      problems: [
        {
          file: `${file}.not`,
          line: 1,
          column: 1,
          path: '',
          message: 'cannot be read (no such file); peage init writes a sample',
        },
      ],
      more: 0,
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
