// Tests that all problems of a file are reported at once, and that no problem hides another problem.
import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { first, second } from '../support/certificates.ts'

// biome-ignore lint/suspicious/noExplicitAny: the mistakes write values of wrong types
type Written = any

/** Returns a configuration without problems. */
function validConfig(): Written {
  return {
    server: {
      listen: '0.0.0.0:8080',
      tls: { cert: 'first.crt', key: 'first.key' },
      cors: { origins: ['https://o'] },
    },
    admin: { listen: '127.0.0.1:8081', tokens: { a: 'a-token-of-operator-a', b: 'a-token-of-operator-b' } },
    storage: { postgres: 'postgres://p/x', redis: '' },
    auth: { issuer: 'i', keys: ['one.jwk', 'two.jwk', 'three.jwk', 'four.jwk'] },
    limits: { free_daily: 1 },
    upstreams: {
      secure: { targets: ['https://s'], tls: { ca: 'first.crt' } },
      plain: { targets: ['http://p'], retries: 1 },
      twin: { targets: ['http://p'] },
    },
    routes: [
      {
        path: '/fields',
        upstream: 'plain',
        headers: { request: { set: {}, remove: [] }, response: { set: {}, remove: [] } },
      },
      { path: '/cors', upstream: 'plain', cors: { origins: ['https://o'] } },
      { path: '/one/:id', upstream: 'plain', rewrite: '/x/:id' },
      { path: '/shut/*', upstream: 'plain', hosts: ['h', 'i'], methods: ['PUT'] },
      { path: '/none', upstream: 'secure', auth: 'none' },
      { path: '/twice', upstream: 'plain', hosts: ['h'], methods: ['GET'] },
      { path: '/socket', upstream: 'plain', methods: ['GET'], websocket: true },
      { path: '/secure', upstream: 'secure' },
      { path: '/open/*', upstream: 'twin', auth: 'none', methods: ['PUT'] },
      { path: '/once', upstream: 'plain', hosts: ['h'], methods: ['GET'] },
    ],
    tests: [{ request: 'GET /fields', expect: { status: 200 } }],
  }
}

const jwk = { ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }) }
const files: Record<string, string> = {
  'first.crt': first.cert,
  'first.key': first.key,
  'second.key': second.key,
  'one.jwk': JSON.stringify({ ...jwk, kid: 'one' }),
  'three.jwk': JSON.stringify({ ...jwk, kid: 'three' }),
  'four.jwk': JSON.stringify({ ...jwk, kid: 'four' }),
  'two.jwk': JSON.stringify({ ...jwk, kid: 'two' }),
  text: 'no key',
}

/** For each mistake, the key at which `check` reports it, and a function that makes the mistake. */
const mistakes: [at: string, spoil: (config: Written) => void][] = [
  ['server.listen', c => (c.server.listen = 'x')],
  ['server.lisen', c => (c.server.lisen = 'x')],
  ['server.drain_timeout', c => (c.server.drain_timeout = '${UNSET}')],
  ['server.workers', c => (c.server.workers = 2)],
  ['server.tls.cert', c => (c.server.tls.cert = 'text')],
  ['server.tls.cert', c => (c.server.tls.cert = 'gone')],
  ['server.tls.cert', c => (c.server.tls.cert = 7)],
  ['server.tls.key', c => (c.server.tls.key = 'text')],
  ['server.tls.key', c => (c.server.tls.key = 'gone')],
  ['server.tls.crt', c => (c.server.tls.crt = 'x')],
  ['server.cors.credentials', c => Object.assign(c.server.cors, { origins: ['*'], credentials: true })],
  ['server.cors.max_age', c => (c.server.cors.max_age = 'long')],
  ['admin.listen', c => (c.admin.listen = 7)],
  ['admin.token', c => (c.admin.token = 'short')],
  ['admin.tokens.c', c => (c.admin.tokens.c = 'short')],
  ['admin.tokens.d', c => (c.admin.tokens.d = c.admin.tokens.a)],
  ['storage.pool', c => (c.storage.pool = 0)],
  ['storage.postgres_listen', c => (c.storage.postgres_listen = 'postgres://p/x?sslcert=gone')],
  ['auth.issuer', c => (c.auth.issuer = '')],
  ['auth.keys[0]', c => (c.auth.keys[0] = 'text')],
  ['auth.keys[2]', c => (c.auth.keys[2] = 'two.jwk')],
  ['auth.key_secret_old', c => (c.auth.key_secret_old = 'a-secret-of-before')],
  ['auth.keys[3]', c => (c.auth.keys[3] = '${file:gone}')],
  ['limits', c => (c.limits = 3)],
  ['upstreams.secure.tls.ca', c => (c.upstreams.secure.tls.ca = 'text')],
  ['upstreams["bad name"]', c => (c.upstreams['bad name'] = { targets: ['http://x'] })],
  ['upstreams.secure.retries', c => (c.upstreams.secure.retries = -1)],
  ['upstreams.secure.tls.name', c => (c.upstreams.secure.tls.name = 'x')],
  ['upstreams.plain.tls', c => (c.upstreams.plain.tls = {})],
  ['upstreams.plain.retries', c => (c.upstreams.plain.retries = 'x')],
  ['routes[0].headers.request.set.x-user-id', c => (c.routes[0].headers.request.set['x-user-id'] = 'x')],
  ['routes[0].headers.request.set.a', c => (c.routes[0].headers.request.set.a = 7)],
  ['routes[0].headers.request.set.b', c => (c.routes[0].headers.request.set.b = 'a\nb')],
  ['routes[0].headers.request.remove[0]', c => (c.routes[0].headers.request.remove = ['via'])],
  ['routes[0].headers.response.set.via', c => (c.routes[0].headers.response.set.via = 'x')],
  ['routes[0].headers.response.remov', c => (c.routes[0].headers.response.remov = ['x'])],
  ['routes[0].headers.responses', c => (c.routes[0].headers.responses = {})],
  [
    'routes[1].cors.credentials',
    c => Object.assign(c.routes[1].cors, { credentials: true }).origins.push('*'),
  ],
  ['routes[1].cors.origins[0]', c => (c.routes[1].cors.origins[0] = 7)],
  ['routes[1].upstream', c => (c.routes[1].upstream = 'plian')],
  ['routes[2].rewrite', c => (c.routes[2].rewrite = '/x/:no')],
  ['routes[2].timeout', c => (c.routes[2].timeout = 'x')],
  ['routes[3].path', c => (c.routes[8].path = '/:any/*')],
  ['routes[3].hosts[2]', c => (c.routes[3].hosts[2] = 'h.*')],
  ['routes[4].plans', c => (c.routes[4].plans = ['pro'])],
  ['routes[4].nme', c => (c.routes[4].nme = 'x')],
  ['routes[5].methods[1]', c => (c.routes[5].methods[1] = 'gett')],
  ['routes[5].hosts[1]', c => (c.routes[5].hosts[1] = 7)],
  ['routes[9].path', c => (c.routes[9].path = '/twice')],
  ['routes[6].websocket', c => (c.routes[6].methods = ['POST'])],
  ['routes[7].upstream', c => (c.routes[7].upstream = 7)],
  ['tests[0].expect', c => (c.tests[0].expect = {})],
  ['tests[0].host', c => (c.tests[0].host = 'a b')],
]

function linesOf(config: Written): string[] {
  const readFile = (path: string) => {
    const text = path === 'gateway.yaml' ? stringify(config) : files[path]
    if (text === undefined) throw Object.assign(new Error('gone'), { code: 'ENOENT' })
    return text
  }
  const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile, toServe: true })
  return 'problems' in loaded ? loaded.problems.map(({ path, message }) => `${path}  ${message}`) : []
}

function spoiled(...which: readonly number[]): string[] {
  const config = validConfig()
  for (const index of which) mistakes[index]?.[1](config)
  return linesOf(config)
}

const alone = mistakes.map((_, index) => spoiled(index))

describe('a configuration file', () => {
  it('without mistakes causes no problem', () => expect(linesOf(validConfig())).toEqual([]))

  it.each(mistakes.map(([at], index) => [at, index] as const))(
    'with one mistake at %s causes only the problem for this mistake (case %i)',
    (at, index) => {
      expect(alone[index]).toEqual([expect.stringContaining(`${at}  `)])
    },
  )

  it('with a mistake at every key causes exactly one problem for each mistake', () => {
    const places = [...new Set(mistakes.map(([at]) => at))]
    for (const variant of [0, 1, 2]) {
      const which = places.map(place => {
        const there = [...mistakes.keys()].filter(index => mistakes[index]?.[0] === place)
        return there[variant % there.length] as number
      })
      expect(spoiled(...which).sort()).toEqual(which.flatMap(index => alone[index] ?? []).sort())
    }
  })

  it('with 2 to 6 random mistakes causes exactly the problems for these mistakes', () => {
    const selector = (index: number) => mistakes[index]?.[0]
    const few = fc.uniqueArray(fc.nat(mistakes.length - 1), { selector, minLength: 2, maxLength: 6 })
    fc.assert(
      fc.property(few, which => {
        expect(spoiled(...which).sort()).toEqual(which.flatMap(index => alone[index] ?? []).sort())
      }),
      { numRuns: 50 },
    )
  })
})
