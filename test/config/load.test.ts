// Tests the configuration that results from a file, with its defaults, units and names.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { warningLinesOf } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { builtInPlans } from '../support/plans.ts'
import { configOf, linesOf, load } from './reading.ts'

const SECOND = 1_000
const MINUTE = 60_000
const DAY = 86_400_000

const DEFAULTS = {
  server: {
    listen: { host: '0.0.0.0', port: 8080 },
    workers: 1,
    language: 'fr',
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
    return_urls: [],
    providers: [],
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
      keys: { limit: 30, windowMs: 60 * MINUTE },
      external: { limit: 300, windowMs: MINUTE },
    },
  },
  account: { deletion: false },
  plans: builtInPlans.all,
  limits: { free_daily: 1 },
  subscription: { upgrade_url: '' },
  webhooks: { allow_private_networks: false, timeout: 10 * SECOND, retention: 30 * DAY },
  upstreams: {},
  routes: [],
  tests: [],
}

describe('defaults of the configuration', () => {
  it('have the values in DEFAULTS, and contain no section admin', () => {
    expect(configOf('routes: []')).toEqual(DEFAULTS)
    expect(configOf('routes: []')).not.toHaveProperty('admin')
  })

  it('apply to all keys of a section if these keys are all commented out', () => {
    expect(configOf('server:\n  # listen: x\nauth:\n  hashing:\nupstreams:\nroutes:\n')).toEqual(DEFAULTS)
  })

  it('apply to a key without a value, if the key is allowed to have no value', () => {
    expect(
      configOf(
        'storage:\n  postgres:\n  postgres_listen:\n  redis:\nauth:\n  key_secret:\n  key_secret_old:\nsubscription:\n  upgrade_url:\n',
      ),
    ).toEqual(DEFAULTS)
    expect(configOf('admin:\n  token:\n').admin).toEqual(configOf('admin: {}').admin)
    expect(configOf('mail:\n  smtp:\n  from:\nevents:\n  url:\n  secret:\n')).toEqual(DEFAULTS)
  })

  it('stay the same if a program modifies a loaded configuration', () => {
    const first = configOf('routes: []')
    first.server.trusted_proxies.push('10.0.0.1')
    first.auth.rate_limits.register = null
    expect(configOf('routes: []')).toEqual(DEFAULTS)
  })

  it('apply to `admin` if the file contains `admin` as an empty section', () => {
    expect(configOf('admin: {}').admin).toEqual({
      listen: { host: '127.0.0.1', port: 8081 },
      token: '',
      tokens: {},
      console: true,
    })
  })

  it('apply to upstreams and routes', () => {
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
        bearer_only: false,
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

it('every value is converted to its type and unit', () => {
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
      bearer_only: false,
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

it.each(['0', '0s', '"0"', '0d'])(
  'the value %s means no limit for the age of a connection or a session',
  none => {
    const { auth, upstreams } = configOf(
      `auth: { session_max: ${none} }\nupstreams: { a: { targets: ["http://a"], connection_age: ${none} } }`,
    )
    expect([auth.session_max, upstreams.a?.connection_age]).toEqual([0, 0])
  },
)

it.each([
  ['', ''],
  ['redis://r', 'redis://r'],
  ['{ cluster: [a:1, rediss://b:2] }', { cluster: ['redis://a:1', 'rediss://b:2'] }],
])('storage.redis can have the value %j', (written, redis) => {
  expect(configOf(`storage:\n  redis: ${written || '""'}`).storage.redis).toEqual(redis)
})

it('a route without a name gets a unique name that is derived from its path', () => {
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

it.each([
  'server: { tls: { cert: gone.crt, key: gone.key } }',
  'upstreams: { a: { targets: ["https://a"], tls: { ca: gone.pem } } }',
])('a command that starts no gateway does not read the files in %s', text => {
  expect(linesOf(text)).toEqual([])
})

it('check prints at most 100 warnings and the number of further warnings', () => {
  const upstreams = Array.from({ length: 130 }, (_, index) => `  u${index}: { targets: ["http://a"] }`)
  const loaded = load(`upstreams:\n${upstreams.join('\n')}`)
  expect('config' in loaded && warningLinesOf(loaded.warnings)).toHaveLength(101)
  expect(loaded).toMatchObject({ warnings: { more: 30 } })
})

it('a configuration file is read from disk, and a missing file is reported as a problem at line 1', () => {
  const folder = mkdtempSync(join(tmpdir(), 'peage-'))
  try {
    const file = join(folder, 'gateway.yaml')
    writeFileSync(join(folder, 'secret'), 'a s3cret of tests\n')
    writeFileSync(file, `auth:\n  key_secret: \${file:${join(folder, 'secret')}}\n`)
    expect(loadConfig({ file, env: {} })).toMatchObject({
      config: { auth: { key_secret: 'a s3cret of tests' } },
    })
    expect(loadConfig({ file: `${file}.not`, env: {} })).toEqual({
      problems: [{ file: `${file}.not`, line: 1, column: 1, path: '', message: expect.any(String) }],
      more: 0,
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
