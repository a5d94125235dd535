// `GET /admin/v1/routes` shows routes with their guards, upstream targets and the health of the targets.
import { describe, expect, it } from 'vitest'
import { worstOf } from '../../src/upstream/targets/target-status.ts'
import { call } from '../support/client.ts'
import { journey } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'

interface Route {
  name: string
  upstream: { healthy: boolean; targets: { url: string; healthy: boolean }[] }
}

describe('the list of routes', () => {
  const nobody = 'http://127.0.0.1:1'
  const at = journey(
    embeddedSetup,
    {},
    upstream => `upstreams:
  plain: { targets: ['${upstream}'] }
  pair: { targets: ['${upstream}', '${nobody}'], retries: 0 }
  checked:
    targets: ['${upstream}']
    health: { path: /health, interval: 20ms, unhealthy_after: 2 }
    circuit_breaker: { of_at_least: 2, open_for: 1h }
  broken:
    targets: ['${nobody}']
    circuit_breaker: { of_at_least: 2, open_for: 1h }
routes:
  - { path: /open/:id, upstream: plain, auth: none, methods: [GET], hosts: [api.example.com], websocket: true }
  - { name: full, path: /full/*, upstream: checked, plans: [free, pro], free_daily: true, rate_limit: 5/1m, max_body: 1KiB }
  - { name: maybe, path: /maybe, upstream: plain, auth: optional, scope: 'data:read' }
  - { name: bearer, path: /bearer, upstream: plain, bearer_only: true }
  - { name: pair, path: /pair, upstream: pair, auth: none }
  - { name: broken, path: /broken, upstream: broken, auth: none }
`,
  )
  const routes = async () =>
    (await call(at.gateway.admin, 'GET', '/admin/v1/routes', { token: at.gateway.adminToken })).body
      .routes as Route[]
  const upstreamOf = async (name: string) =>
    (await routes()).find(route => route.name === name)?.upstream as Route['upstream']

  it('contains the routes as declared, with their guards in the order in which they run', async () => {
    const [open, full, maybe, bearer] = await routes()
    expect(open).toEqual({
      name: expect.any(String),
      path: '/open/:id',
      methods: ['GET'],
      hosts: ['api.example.com'],
      auth: 'none',
      guards: ['target'],
      scope: null,
      bearer_only: false,
      plans: null,
      free_daily: false,
      quota: null,
      rate_limit: null,
      max_body: null,
      websocket: true,
      upstream: {
        name: 'plain',
        healthy: true,
        targets: [{ url: at.upstream.url, healthy: true, checks: null, circuit: null, avoided: false }],
      },
    })
    expect(full).toMatchObject({
      name: 'full',
      methods: null,
      hosts: [],
      auth: 'required',
      guards: ['authenticate', 'rate_limit', 'plan', 'max_body', 'target', 'free_daily'],
      plans: ['free', 'pro'],
      free_daily: true,
      rate_limit: { limit: 5, window_seconds: 60 },
      max_body: 1024,
      upstream: {
        name: 'checked',
        targets: [{ url: at.upstream.url, checks: 'passing', circuit: 'closed' }],
      },
    })
    expect(maybe).toMatchObject({
      auth: 'optional',
      guards: ['authenticate', 'scope', 'target'],
      scope: 'data:read',
      bearer_only: false,
    })
    expect(bearer).toMatchObject({
      guards: ['authenticate', 'scope', 'target'],
      scope: null,
      bearer_only: true,
    })
  })

  it('shows whether the health checks of a target fail or pass', async () => {
    at.upstream.answer = (_, response) => response.writeHead(500).end()
    await expect
      .poll(() => upstreamOf('full'))
      .toMatchObject({
        healthy: false,
        targets: [{ healthy: false, checks: 'failing', circuit: 'closed' }],
      })
    at.upstream.answer = undefined
    await expect
      .poll(() => upstreamOf('full'))
      .toMatchObject({
        healthy: true,
        targets: [{ healthy: true, checks: 'passing' }],
      })
  })

  it('shows that the gateway avoids a failing target, or that its circuit breaker is open', async () => {
    await Promise.all(
      ['pair', 'broken'].flatMap(path => [1, 2].map(() => call(at.gateway.url, 'GET', `/${path}`))),
    )
    expect(await upstreamOf('pair')).toMatchObject({
      healthy: true,
      targets: [
        { url: at.upstream.url, healthy: true, avoided: false },
        { url: nobody, healthy: false, avoided: true, circuit: null },
      ],
    })
    expect(await upstreamOf('broken')).toMatchObject({
      healthy: false,
      targets: [{ url: nobody, healthy: false, circuit: 'open', checks: null }],
    })
  })
})

describe('the list of routes with quotas', () => {
  const at = journey(
    embeddedSetup,
    { limits: '' },
    upstream => `plans: [{ name: starter, quotas: { exports: 10/day } }]
upstreams: { echo: { targets: ['${upstream}'] } }
routes:
  - { name: one, path: /one, upstream: echo, quota: exports }
  - { name: ten, path: /ten, upstream: echo, quota: { name: exports, cost: 10 } }
  - { name: free, path: /free, upstream: echo }
`,
  )

  it('contains the quota of each route, the cost of a request, and the quota guard', async () => {
    const { gateway } = at
    const { body } = await call(gateway.admin, 'GET', '/admin/v1/routes', { token: gateway.adminToken })
    expect(body.routes).toMatchObject([
      { quota: { name: 'exports', cost: 1 }, guards: ['authenticate', 'plan', 'target', 'quota'] },
      { quota: { name: 'exports', cost: 10 }, guards: ['authenticate', 'plan', 'target', 'quota'] },
      { quota: null, guards: ['authenticate', 'target'] },
    ])
  })
})

describe('the health of a target that several processes check', () => {
  const well = {
    upstream: 'a',
    target: 'http://a',
    isHealthy: true,
    checks: 'passing',
    problem: null,
    circuit: 'closed',
    isEjected: false,
  } as const

  it('is the worst state that any of these processes reports', () => {
    const ill = {
      ...well,
      isHealthy: false,
      checks: 'failing',
      problem: 'timeout',
      circuit: 'half_open',
      isEjected: true,
    } as const
    const other = { ...well, target: 'http://b' }
    expect(worstOf([[well, other], [ill, other], [well]])).toEqual([ill, other])
    expect(worstOf([])).toEqual([])
  })
})
