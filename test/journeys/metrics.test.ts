// `GET /metrics` of a running gateway exports the documented names and labels.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { ask, requestBytes } from '../security/raw-client.ts'
import { call, login, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { journey, routes } from '../support/journey.ts'
import { checkMetrics } from '../support/promtool.ts'
import { type Scrape, scrape } from '../support/scrape.ts'
import { describeWithPromtool, poolSize } from '../support/services.ts'
import { describeOverSetups } from '../support/setups.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

/** A longer timeout than the default, for busy machines. */
const patiently = { timeout: 5_000 }

type Series = readonly [name: string, labels: Record<string, string>]

/**
 * Waits until each series has grown by the given amount. The wait is necessary, because the gateway counts a request
 * only after its response.
 */
async function expectGrowth(
  admin: string,
  before: Scrape,
  growth: readonly (readonly [...Series, number])[],
) {
  await expect
    .poll(async () => {
      const now = await scrape(admin)
      return growth.map(([name, labels]) => now.sum(name, labels) - before.sum(name, labels))
    }, patiently)
    .toEqual(growth.map(([, , by]) => by))
}

const requests = (route: string, method: string, status: number) =>
  ['http_requests_total', { route, method, status: String(status) }] as const
const guard = (name: string, decision: string) =>
  ['peage_guard_decisions_total', { guard: name, decision }] as const
const auth = (endpoint: string, outcome: string) => ['peage_auth_total', { endpoint, outcome }] as const

describeOverSetups('the metrics', setup => {
  const at = journey(setup, { rateLimits: 'rate_limits: { register: 0, login_failures: 2/5m }' })
  const get = (path: string, token?: string, headers: Record<string, string> = {}) =>
    call(at.gateway.url, 'GET', path, { headers, ...(token === undefined ? {} : { token }) })
  const before = () => scrape(at.gateway.admin)

  it('are text for Prometheus, need no token, and have Cache-Control: no-store', async () => {
    const answer = await fetch(`${at.gateway.admin}/metrics`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  it('count each request once, by its route, method and status', async () => {
    const start = await before()
    for (let i = 0; i < 3; i++) await get(`/public/${i}`)
    await call(at.gateway.url, 'HEAD', '/public/x')
    await call(at.gateway.url, 'PROPFIND', '/public/x')
    await get('/courses/1')
    await get('/down')
    await get('/slow-to-nowhere')
    await call(at.gateway.url, 'PATCH', '/things/1')
    await get('/.well-known/jwks.json')
    await ask(at.gateway.url, requestBytes('GET', '/public/%2e%2e/x'))
    // Requests to the admin listener are not counted.
    for (const path of ['/metrics', '/healthz', '/readyz', '/admin/v1/users'])
      await call(at.gateway.admin, 'GET', path, { token: at.gateway.adminToken })
    await expectGrowth(at.gateway.admin, start, [
      [...requests('public', 'GET', 200), 3],
      [...requests('public', 'HEAD', 200), 1],
      [...requests('public', 'other', 200), 1],
      [...requests('courses', 'GET', 401), 1],
      [...requests('down', 'GET', 502), 1],
      [...requests('none', 'GET', 404), 1],
      [...requests('none', 'PATCH', 405), 1],
      [...requests('/.well-known/jwks.json', 'GET', 200), 1],
      [...requests('none', 'GET', 400), 1],
      ['http_requests_total', {}, 11],
      ['http_request_duration_seconds_count', {}, 11],
      ['http_request_duration_seconds_count', { route: 'public' }, 5],
    ])
  })

  it('count a request with status 499 if the client leaves before the response', async () => {
    const start = await before()
    const arrived = new Promise<void>(resolve => {
      at.upstream.answer = () => resolve()
    })
    const { hostname, port } = new URL(at.gateway.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    socket.write('GET /public/x HTTP/1.1\r\nHost: x\r\n\r\n')
    await arrived
    socket.destroy()
    await expectGrowth(at.gateway.admin, start, [
      [...requests('public', 'GET', 499), 1],
      ['http_requests_total', {}, 1],
      // If the client leaves during an attempt, the duration of the attempt is not recorded.
      ['peage_upstream_duration_seconds_count', {}, 0],
    ])
  })

  it('measure each upstream attempt until its response head arrives or the attempt fails', async () => {
    let end = () => {}
    at.upstream.answer = (_request, response) => {
      response.write('a')
      end = () => response.end()
    }
    const start = await before()
    const answer = await fetch(`${at.gateway.url}/public/x`)
    await expectGrowth(at.gateway.admin, start, [
      ['peage_upstream_duration_seconds_count', { upstream: 'echo' }, 1],
      ['http_request_duration_seconds_count', { route: 'public' }, 0],
    ])
    end()
    await answer.text()
    await get('/down')
    await get('/courses/x')
    await expectGrowth(at.gateway.admin, start, [
      ['peage_upstream_duration_seconds_count', { upstream: 'echo' }, 1],
      ['http_request_duration_seconds_count', { route: 'public' }, 1],
      ['peage_upstream_duration_seconds_count', { upstream: 'nobody' }, 1],
    ])
  })

  it('count the decisions of each guard that checks a request', async () => {
    const [free, pro] = [await newUser(at.gateway), await newUser(at.gateway, 'pro')]
    const start = await before()
    await get('/public/x')
    await get('/pro')
    await get('/pro', free.access)
    await get('/pro', pro.access)
    await get('/courses/1', free.access)
    await get('/courses/2', free.access)
    await call(at.gateway.url, 'POST', '/limited', { body: 'x'.repeat(2048) })
    await expectGrowth(at.gateway.admin, start, [
      [...guard('authenticate', 'pass'), 4],
      [...guard('authenticate', 'refuse'), 1],
      [...guard('plan', 'pass'), 1],
      [...guard('plan', 'refuse'), 1],
      [...guard('max_body', 'refuse'), 1],
      [...guard('target', 'pass'), 4],
      [...guard('free_daily', 'pass'), 1],
      [...guard('free_daily', 'refuse'), 1],
    ])
  })

  it('count the decisions of guards at the gateway’s own endpoints', async () => {
    const [free, pro] = [await newUser(at.gateway), await newUser(at.gateway, 'pro')]
    const start = await before()
    for (const token of ['none', free.access, pro.access]) {
      await call(at.gateway.url, 'POST', '/api/v1/user/api-token', { token })
    }
    await expectGrowth(at.gateway.admin, start, [
      [...guard('authenticate', 'refuse'), 1],
      [...guard('authenticate', 'pass'), 2],
      [...guard('plan', 'refuse'), 1],
      [...guard('plan', 'pass'), 1],
    ])
  })

  it('count the outcomes of register, login, refresh and logout', async () => {
    const start = await before()
    const account = { email: 'counted@example.com', password: 'correct horse battery' }
    const post = (endpoint: string, body: object) =>
      call(at.gateway.url, 'POST', `/api/v1/auth/${endpoint}`, { body })
    await post('register', account)
    const { refresh } = await login(at.gateway.url, account.email, account.password)
    await post('register', account)
    for (let i = 0; i < 3; i++) await post('login', { ...account, password: 'not this one' })
    await post('refresh', { refresh_token: refresh })
    await post('refresh', { refresh_token: refresh })
    await post('logout', {})
    await call(at.gateway.url, 'GET', '/api/v1/auth/login')
    await expectGrowth(at.gateway.admin, start, [
      [...auth('register', 'success'), 1],
      [...auth('register', 'email_taken'), 1],
      [...auth('login', 'success'), 1],
      [...auth('login', 'credentials_invalid'), 2],
      [...auth('login', 'rate_limited'), 1],
      [...auth('refresh', 'success'), 1],
      [...auth('refresh', 'refresh_token_inactive'), 1],
      [...auth('logout', 'success'), 1],
      ['peage_auth_total', {}, 9],
    ])
  })

  it('show the state of the change feed, and the state of the pool and Redis if they are in use', async () => {
    const { series } = await before()
    expect(series.get('peage_change_feed_trusted')).toBe(1)
    expect(series.get('peage_pending_logouts')).toBe(0)
    const isEmbedded = at.stores.postgres === ''
    expect(series.get('peage_redis_up')).toBe(isEmbedded ? undefined : 1)
    expect(series.get('peage_postgres_pool_max_connections')).toBe(isEmbedded ? undefined : poolSize)
    expect(series.get('peage_postgres_pool_waiting_requests')).toBe(isEmbedded ? undefined : 0)
    const open = series.get('peage_postgres_pool_connections')
    if (isEmbedded) expect(open).toBeUndefined()
    else expect(open).toBeGreaterThan(0)
  })
})

describe('the metrics without a request log', () => {
  let upstream: Upstream
  let sockets: WebSocketUpstream
  let gateway: TestGateway
  beforeAll(async () => {
    ;[upstream, sockets] = await Promise.all([startUpstream(), startWebSocketUpstream()])
    sockets.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    }
    gateway = await startGateway(
      `${routes(upstream.url)}  - { name: chat, path: /chat, upstream: chat, websocket: true, auth: none }
  - { name: rated, path: /rated, upstream: echo, auth: none, rate_limit: 1/1h }
`.replace(
        'upstreams:\n',
        `upstreams:
  chat: { targets: ['${sockets.url}'] }
`,
      ),
      undefined,
      { server: ', log: { requests: false }' },
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([upstream?.close(), sockets?.close()])
  })

  it('count requests', async () => {
    const start = await scrape(gateway.admin)
    await call(gateway.url, 'GET', '/public/x')
    await expectGrowth(gateway.admin, start, [[...requests('public', 'GET', 200), 1]])
    expect(gateway.log.filter(line => line.includes('"msg":"request"'))).toEqual([])
  })

  it('count the decisions of a rate limit', async () => {
    const start = await scrape(gateway.admin)
    for (let i = 0; i < 3; i++) await call(gateway.url, 'GET', '/rated')
    await expectGrowth(gateway.admin, start, [
      [...guard('rate_limit', 'pass'), 1],
      [...guard('rate_limit', 'refuse'), 2],
    ])
  })

  it('show open WebSockets and event streams, and count their requests when they end', async () => {
    const start = await scrape(gateway.admin)
    const client = await openWebSocket(`${gateway.url}/chat`)
    const events = await fetch(`${gateway.url}/chat`)
    await expectGrowth(gateway.admin, start, [
      ['peage_open_streams', { kind: 'web_socket' }, 1],
      ['peage_open_streams', { kind: 'event_stream' }, 1],
      ['peage_upstream_duration_seconds_count', { upstream: 'chat' }, 2],
      ['http_requests_total', { route: 'chat' }, 0],
    ])
    client.socket.close()
    await events.body?.cancel()
    await expectGrowth(gateway.admin, start, [
      ['peage_open_streams', {}, 0],
      [...requests('chat', 'GET', 101), 1],
      [...requests('chat', 'GET', 200), 1],
      // The WebSocket adds no request duration, but the event stream does.
      ['http_request_duration_seconds_count', { route: 'chat' }, 1],
      ['peage_upstream_duration_seconds_count', { upstream: 'chat' }, 2],
    ])
  })

  it('get no new series from requests with random paths, methods and credentials', async () => {
    const user = await newUser(gateway)
    const one = async (n: number) => {
      const path = Math.random().toString(36).slice(2)
      const headers = [
        `Authorization: Bearer ${path}`,
        `X-API-Key: peage_${path}`,
        `X-Forwarded-For: 10.0.0.${n % 250}`,
      ]
      const method = ['GET', 'PURGE', 'POST', 'LOCK', 'MKCOL'][n % 5] as string
      const target = ['', '/any', '/public', '/things', '/api/v1/auth', '/old/v2'][n % 6]
      const line = n % 7 === 0 ? [`Authorization: Bearer ${user.access}`] : headers
      await ask(gateway.url, requestBytes(method, `${target}/${path}?${path}`, line), method)
    }
    const many = async (count: number) => {
      for (let n = 0; n < count; n += 20) await Promise.all(Array.from({ length: 20 }, (_, i) => one(n + i)))
    }
    // 220 requests cover all 210 combinations of `n % 5`, `n % 6` and `n % 7`. After that, no request has a new
    // combination.
    await many(220)
    const before = await scrape(gateway.admin)
    await many(1_000)
    const after = await scrape(gateway.admin)
    expect(after.sum('http_requests_total') - before.sum('http_requests_total')).toBeGreaterThan(900)
    expect([...after.series.keys()].filter(id => !before.series.has(id))).toEqual([])
    expect(after.series.size).toBe(before.series.size)
  }, 120_000)

  describeWithPromtool('promtool', () => {
    it('finds no problem in the metrics', async () => {
      const { page } = await scrape(gateway.admin)
      expect(await checkMetrics(inject('promtoolBin'), page)).toEqual({ code: 0, says: '' })
      const misnamed = `${page}\n# TYPE somethingElse counter\nsomethingElse 1\n`
      expect((await checkMetrics(inject('promtoolBin'), misnamed)).code).not.toBe(0)
    })
  })
})

it('the maximum event loop delay covers the time since the last scrape, even if the console reads it meanwhile', async () => {
  // The gateway takes a sample for the console whenever a 10 s step ends. The test clock does not move, and always
  // shows a time that is 0.6 s before the end of a step. So the gateway takes a sample every 0.6 s.
  const gateway = await startGateway('', undefined, { at: Math.ceil(Date.now() / 10_000) * 10_000 - 600 })
  await scrape(gateway.admin)
  await sleep(50)
  const end = performance.now() + 300
  while (performance.now() < end);
  await sleep(1_500)
  expect((await scrape(gateway.admin)).value('nodejs_eventloop_lag_max_seconds')).toBeGreaterThan(0.25)
  await gateway.stop()
})
