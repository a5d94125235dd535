// What an upstream may contain, and what is reported otherwise (CONTRACT §2, `upstreams`).
import { describe, expect, it } from 'vitest'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { loadConfig } from '../../src/config/load.ts'
import { first, second } from '../support/certificates.ts'

const files: Record<string, string> = {
  'text.pem': 'no certificate',
  'half.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
}

function load(app: string, toServe = true) {
  const readFile = (path: string) => {
    if (path === 'gateway.yaml') return `upstreams:\n  app: { ${app} }\n`
    if (files[path] === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' })
    return files[path]
  }
  return loadConfig({ file: 'gateway.yaml', env: {}, readFile, toServe })
}

function problems(app: string, toServe = true): string[] {
  const loaded = load(app, toServe)
  return 'problems' in loaded ? loaded.problems.map(formatDiagnostic) : []
}

const one = 'targets: ["http://a"]'
const tls = 'targets: ["https://a"]'

describe('upstreams', () => {
  it('of several targets, with everything that can be said of them, are read', () => {
    const loaded = load(
      'targets: ["http://a", "http://b:81"], health: { path: "/health?deep=1" }, retries: 0, circuit_breaker: {}',
    )
    expect('config' in loaded && loaded.config.upstreams.app).toMatchObject({
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

  it('have weights, look-ups, an age of connections and a split of their own', () => {
    const loaded = load(
      'targets: [{ url: "http://a", weight: 0 }, { url: "HTTP://B/" }], resolve: { every: 1s, family: 6 }, connection_age: 0, split_by: user',
    )
    expect('config' in loaded && loaded.config.upstreams.app).toMatchObject({
      targets: [
        { url: 'http://a', weight: 0 },
        { url: 'http://b', weight: 100 },
      ],
      resolve: { every: 1_000, most: 32, family: 6 },
      connection_age: 0,
      split_by: 'user',
    })
    const fixed = load(`${one}, resolve: false, connection_age: 90s`)
    expect('config' in fixed && fixed.config.upstreams.app).toMatchObject({
      resolve: false,
      connection_age: 90_000,
    })
  })

  it.each([
    [`${one}, resolve: { every: 500ms }`, 'upstreams.app.resolve.every  must be 1s to 1h'],
    [`${one}, resolve: { most: 257 }`, 'upstreams.app.resolve.most  must be at most 256'],
    [`${one}, resolve: { family: 5 }`, 'upstreams.app.resolve.family  must be auto, 4 or 6'],
    [`${one}, resolve: true`, 'upstreams.app.resolve  must be false, or a mapping of every, most and family'],
    [
      `${one}, connection_age: 5`,
      'upstreams.app.connection_age  must be a duration such as 5m, or 0 for no limit',
    ],
    [`${one}, split_by: address`, 'upstreams.app.split_by  must be request or user'],
    ['targets: [{ url: "http://a", weight: 1001 }]', 'upstreams.app.targets[0].weight  must be at most 1000'],
    [
      'targets: [{ weight: 1 }]',
      'upstreams.app.targets[0].url  is required: an address such as http://127.0.0.1:9000',
    ],
    [
      'targets: [{ url: "http://a/path" }]',
      'upstreams.app.targets[0].url  must not have a path; strip_prefix or rewrite on the route changes paths',
    ],
    [
      'targets: [5]',
      'upstreams.app.targets[0]  must be an address such as http://127.0.0.1:9000, or { url, weight }',
    ],
    [`${one}, health: {}`, 'upstreams.app.health.path  is required: a path such as /health'],
    [
      `${one}, health: { path: health }`,
      'upstreams.app.health.path  must be a path such as /health, in ASCII and percent-encoded, without a fragment',
    ],
    [
      `${one}, health: { path: /, unhealthy_after: 0 }`,
      'upstreams.app.health.unhealthy_after  must be at least 1',
    ],
    [`${one}, retries: 11`, 'upstreams.app.retries  must be at most 10'],
    [
      `${one}, circuit_breaker: { failures: 50 }`,
      'upstreams.app.circuit_breaker.failures  must be a percentage such as 50%',
    ],
    [
      `${one}, circuit_breaker: { failures: 0% }`,
      'upstreams.app.circuit_breaker.failures  must be a percentage of 1% to 100%, such as 50%',
    ],
    [
      `${one}, circuit_breaker: { failures: 101% }`,
      'upstreams.app.circuit_breaker.failures  must be a percentage of 1% to 100%, such as 50%',
    ],
    [
      `${one}, tls: { server_name: a }`,
      'upstreams.app.tls  is for https targets, of which there is none here',
    ],
    [
      `${tls}, tls: { ca: nowhere.pem }`,
      'upstreams.app.tls.ca  cannot read the file "nowhere.pem" (no such file)',
    ],
    [`${tls}, tls: { ca: text.pem }`, 'upstreams.app.tls.ca  holds no certificates in PEM, or broken ones'],
    [`${tls}, tls: { ca: half.pem }`, 'upstreams.app.tls.ca  holds no certificates in PEM, or broken ones'],
    [
      `${tls}, tls: { server_name: "a b" }`,
      'upstreams.app.tls.server_name  must be a host name such as api.example.com, in ASCII and without wildcards',
    ],
  ])('%s is a problem, with its place', (app, message) => {
    const found = problems(app)
    expect(found).toEqual([expect.stringMatching(/^gateway\.yaml:2:\d+ {2}/)])
    expect(found[0]).toContain(message)
  })

  it('need not have their authorities at hand where nothing is to be served', () => {
    expect(problems(`${tls}, tls: { ca: nowhere.pem }`, false)).toEqual([])
  })

  it('may name a file of several authorities', () => {
    files['both.pem'] = `# ours\n${first.cert}\n${second.cert}`
    expect(problems(`${tls}, tls: { ca: both.pem }`)).toEqual([])
  })
})
