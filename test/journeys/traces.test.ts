// Checks which OpenTelemetry spans the gateway sends to a collector, and that the spans contain no secrets.
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { call } from '../support/client.ts'
import { type Collector, startCollector } from '../support/collector.ts'
import type { Stores } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { describeOverSetups, embeddedSetup } from '../support/setups.ts'
import { adminToken, password, spanOf, startTraced, type Traced, treeOf } from '../support/traced.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

describeOverSetups('a gateway that traces', setup => {
  let stores: Stores
  let upstream: Upstream
  let sockets: WebSocketUpstream
  let collector: Collector
  let traced: Traced
  const hasRedis = setup !== embeddedSetup
  beforeAll(async () => {
    ;[stores, upstream, sockets, collector] = await Promise.all([
      setup.open(),
      startUpstream(),
      startWebSocketUpstream(),
      startCollector(),
    ])
    traced = await startTraced(collector, { stores, routes: withMore(upstream.url, sockets.url) })
  })
  beforeEach(() => {
    upstream.received.length = 0
    upstream.answer = undefined
  })
  afterAll(async () => {
    await traced?.stop()
    await Promise.all([upstream, sockets, collector].map(server => server?.close()))
    if (stores !== undefined) await setup.drop(stores)
  })

  it('a guarded request has spans for its guard, for the SQL query of the guard, and for the upstream', async () => {
    const { access } = await traced.newUser()
    const first = await traced.ask('GET', '/any/1?token=secret', { token: access })
    expect(treeOf(first.spans, first.parent)).toEqual([
      'server GET /any/*',
      '  internal guard authenticate',
      '    client SELECT users',
      '  client GET',
    ])
    expect(spanOf(first.spans, 'GET /any/*').attributes).toEqual({
      'http.request.method': 'GET',
      'http.route': '/any/*',
      'http.response.status_code': 200,
      'url.scheme': 'http',
      'url.path': '/any/1',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(traced.url).port),
      'client.address': '127.0.0.1',
      'network.protocol.version': '1.1',
      'peage.request_id': first.answer.headers.get('x-request-id'),
      'peage.route': 'any',
      'peage.decision': 'forwarded',
      'peage.outcome': 'complete',
    })
    expect(spanOf(first.spans, 'guard authenticate').attributes).toEqual({
      'peage.guard': 'authenticate',
      'peage.guard.decision': 'pass',
    })
    expect(spanOf(first.spans, 'SELECT users').attributes).toEqual({
      'db.system.name': 'postgresql',
      'db.operation.name': 'SELECT',
      'db.query.summary': 'SELECT users',
    })
    expect(spanOf(first.spans, 'GET').attributes).toEqual({
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(upstream.url).port),
      'url.full': `${upstream.url}/any/1`,
      'network.protocol.version': '1.1',
      'peage.upstream': 'echo',
    })
    expect(first.spans.filter(span => span.hasFailed)).toEqual([])

    // A request for a cached user needs no query. On a busy machine, the change feed may be late. The user is then not
    // cached yet.
    const askAgain = async () => {
      const { spans, parent } = await traced.ask('GET', '/any/2', { token: access })
      return treeOf(spans, parent)
    }
    await expect
      .poll(askAgain)
      .toEqual(['server GET /any/*', '  internal guard authenticate', '  client GET'])
  })

  it('a request within the daily limit has spans for the Redis and Postgres counters; a request over this limit has no upstream span', async () => {
    const { access } = await traced.newUser()
    const admitted = await traced.ask('GET', '/courses/1', { token: access })
    expect(treeOf(admitted.spans, admitted.parent)).toEqual([
      'server GET /courses/*',
      '  internal guard authenticate',
      '    client SELECT users',
      '  internal guard free_daily',
      ...(hasRedis ? ['    client EVALSHA reserve_uses'] : []),
      '    client UPDATE users',
      '  client GET',
    ])
    if (hasRedis) {
      expect(spanOf(admitted.spans, 'EVALSHA reserve_uses').attributes).toEqual({
        'db.system.name': 'redis',
        'db.operation.name': 'EVALSHA',
        'db.query.summary': 'EVALSHA reserve_uses',
      })
    }
    const refused = await traced.ask('GET', '/courses/2', { token: access })
    expect(treeOf(refused.spans, refused.parent).filter(line => line.includes('client GET'))).toEqual([])
    expect(spanOf(refused.spans, 'guard free_daily').attributes['peage.guard.decision']).toBe('refuse')
    const request = spanOf(refused.spans, 'GET /courses/*')
    expect(request.attributes).toMatchObject({
      'peage.decision': 'daily_limit_reached',
      'http.response.status_code': 429,
    })
    expect(request.hasFailed).toBe(false)
  })

  it('the plan and rate-limit guards have spans', async () => {
    const { access } = await traced.newUser()
    const { spans, parent } = await traced.ask('GET', '/rated', { token: access })
    expect(treeOf(spans, parent)).toEqual([
      'server GET /rated',
      '  internal guard authenticate',
      '    client SELECT users',
      '  internal guard rate_limit',
      ...(hasRedis ? ['    client EVALSHA take_place'] : []),
      '  internal guard plan',
    ])
    expect(spanOf(spans, 'guard rate_limit').attributes['peage.guard.decision']).toBe('pass')
    expect(spanOf(spans, 'guard plan').attributes['peage.guard.decision']).toBe('refuse')
  })

  it('a request to a built-in endpoint has spans for its guards and its store queries', async () => {
    const { email, access } = await traced.newUser()
    const login = await traced.ask('POST', '/api/v1/auth/login', { body: { email, password } })
    const lines = treeOf(login.spans, login.parent)
    expect(lines[0]).toBe('server POST /api/v1/auth/login')
    expect(lines.filter(line => !line.includes('EVALSHA')).slice(1)).toEqual([
      '  client SELECT users',
      '  client INSERT refresh_tokens',
    ])
    expect(spanOf(login.spans, 'POST /api/v1/auth/login').attributes['peage.decision']).toBe('answered')

    const pro = await traced.ask('POST', '/api/v1/user/api-token', { token: access })
    expect(treeOf(pro.spans, pro.parent)).toEqual([
      'server POST /api/v1/user/api-token',
      '  internal guard authenticate',
      '    client SELECT users',
      '  internal guard plan',
    ])
    expect(spanOf(pro.spans, 'guard plan').attributes['peage.guard.decision']).toBe('refuse')
  })

  it('regular checks of the user of an open WebSocket add no spans to the trace', async () => {
    const { access } = await traced.newUser()
    const traceId = randomBytes(16).toString('hex')
    const client = await openWebSocket(`${traced.url}/ws`, {
      token: access,
      headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    })
    client.socket.send('hello')
    expect(await client.next()).toBe('hello')
    // During this time, the gateway checks at least once whether the user is still admitted.
    await new Promise(resolve => setTimeout(resolve, 1_200))
    client.socket.close()
    await client.closed
    const spans = await collector.trace(traceId)
    expect(treeOf(spans, '00f067aa0ba902b7')).toEqual([
      'server GET /ws',
      '  internal guard authenticate',
      '    client SELECT users',
      '  client GET',
    ])
    const sent = spanOf(spans, 'GET')
    expect(sent.attributes['http.response.status_code']).toBe(101)
    expect(sockets.handshakes.at(-1)?.headers.traceparent).toBe(`00-${traceId}-${sent.spanId}-01`)
  })

  it('if the upstream is unreachable, the request span and the upstream span are marked as failed; the upstream span contains the network error', async () => {
    const { spans, answer } = await traced.ask('GET', '/down')
    expect(answer.status).toBe(502)
    // The upstream has only one target, so the gateway makes only one attempt. Each attempt has one span.
    expect(spans.filter(span => span.name === 'GET')).toHaveLength(1)
    expect(spanOf(spans, 'GET')).toMatchObject({
      hasFailed: true,
      attributes: { 'error.type': 'ECONNREFUSED', 'peage.upstream': 'nobody' },
    })
    expect(spanOf(spans, 'GET /down')).toMatchObject({
      hasFailed: true,
      attributes: { 'error.type': '502', 'peage.decision': 'upstream_unreachable' },
    })
  })

  it('each attempt to reach an upstream has a span, and the upstream receives the ID of that span', async () => {
    const { spans, answer } = await traced.ask('GET', '/retried')
    expect(answer.status).toBe(200)
    const tries = spans.filter(span => span.name === 'GET')
    expect(tries.map(span => [span.hasFailed, span.attributes['http.request.resend_count']])).toEqual([
      [true, undefined],
      [false, 1],
    ])
    expect(upstream.received.at(-1)?.headers.traceparent).toBe(
      `00-${tries[1]?.traceId}-${tries[1]?.spanId}-01`,
    )
  })

  it('a status from 400 marks the upstream span as failed; only a status from 500 also marks the request span', async () => {
    for (const [status, fails] of [
      [404, false],
      [503, true],
    ] as const) {
      upstream.answer = (_request, response) => response.writeHead(status).end()
      const { spans } = await traced.ask('GET', '/public/x')
      expect([spanOf(spans, 'GET').hasFailed, spanOf(spans, 'GET /public/*').hasFailed]).toEqual([
        true,
        fails,
      ])
    }
  })

  it('unknown paths and methods do not appear in span names', async () => {
    const unknown = await traced.ask('GET', '/no/such/path')
    expect(treeOf(unknown.spans, unknown.parent)).toEqual(['server GET'])
    expect(unknown.spans[0]?.attributes).toMatchObject({ 'peage.decision': 'route_unknown' })
    expect(unknown.spans[0]?.attributes).not.toHaveProperty('http.route')
    const odd = await traced.ask('PROPFIND', '/public/x')
    expect(treeOf(odd.spans, odd.parent)).toEqual(['server HTTP /public/*', '  client HTTP'])
    expect(odd.spans[0]?.attributes).toMatchObject({
      'http.request.method': '_OTHER',
      'http.request.method_original': 'PROPFIND',
    })
  })

  it.each([
    ['an invalid port', `a.example:${'9'.repeat(30)}`],
    ['an invalid host name', `${'a'.repeat(8_000)}.example`],
  ])(
    'a Host header with %s is left out of the span, because a collector would otherwise refuse the whole batch',
    async (_, host) => {
      const path = `/public/${randomBytes(8).toString('hex')}`
      const { hostname, port } = new URL(traced.url)
      connect(Number(port), hostname).end(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      const sent = () => collector.spans.find(({ attributes }) => attributes['url.path'] === path)
      await expect.poll(sent, { timeout: 15_000 }).toBeDefined()
      expect(Object.keys(sent()?.attributes ?? {}).filter(name => name.startsWith('server.'))).toEqual([])
    },
  )

  describe('propagation', () => {
    const sentOn = () => upstream.received.at(-1)?.rawHeaders ?? []
    const valuesOf = (name: string) =>
      sentOn().filter((_, i) => i % 2 === 1 && sentOn()[i - 1]?.toLowerCase() === name)

    it('the upstream receives the client’s tracestate, and only one traceparent, which contains the ID of the upstream span', async () => {
      const { spans } = await traced.ask('GET', '/public/x', { headers: { tracestate: 'a=1,b=2' } })
      const sent = spanOf(spans, 'GET')
      expect(valuesOf('traceparent')).toEqual([`00-${sent.traceId}-${sent.spanId}-01`])
      expect(valuesOf('tracestate')).toEqual(['a=1,b=2'])
      expect(sent.traceState).toBe('a=1,b=2')
    })

    it('a request without traceparent starts a new trace', async () => {
      const answer = await call(traced.url, 'GET', '/public/x')
      const [, traceId = ''] = String(valuesOf('traceparent')[0]).split('-')
      const spans = await collector.trace(traceId)
      expect(treeOf(spans, '')).toEqual(['server GET /public/*', '  client GET'])
      expect(spanOf(spans, 'GET /public/*').attributes['peage.request_id']).toBe(
        answer.headers.get('x-request-id'),
      )
    })

    it.each([
      '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331',
      '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
      'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01, 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    ])(
      'if the client’s traceparent is malformed (%s), the gateway replaces it and removes the tracestate',
      async traceparent => {
        await call(traced.url, 'GET', '/public/x', { headers: { traceparent, tracestate: 'a=1' } })
        const [onward = '', ...more] = valuesOf('traceparent')
        expect(more).toEqual([])
        expect(onward).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
        expect(onward.toLowerCase()).not.toContain('0af7651916cd43dd8448eb211c80319c')
        expect(valuesOf('tracestate')).toEqual([])
      },
    )

    it('a traceparent with a later version of the format is accepted', async () => {
      const traceId = randomBytes(16).toString('hex')
      const traceparent = `01-${traceId}-b7ad6b7169203331-01-more`
      await call(traced.url, 'GET', '/public/x', { headers: { traceparent } })
      expect(treeOf(await collector.trace(traceId), 'b7ad6b7169203331')[0]).toBe('server GET /public/*')
    })

    it('if the sampled flag of the client’s traceparent is 0, no span is sent, and the upstream also receives the flag 0', async () => {
      const traceId = randomBytes(16).toString('hex')
      const traceparent = `00-${traceId}-b7ad6b7169203331-00`
      await call(traced.url, 'GET', '/public/x', { headers: { traceparent } })
      expect(valuesOf('traceparent')[0]).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
      expect(valuesOf('traceparent')[0]).not.toBe(traceparent)
      // The gateway sends spans in order. So if the request above had a span, the collector would have received it
      // before the span of this request.
      await traced.ask('GET', '/public/x')
      expect(collector.spans.filter(span => span.traceId === traceId)).toEqual([])
    })

    it('the upstream receives no traceparent if the route removes this header', async () => {
      await traced.ask('GET', '/untold')
      expect(valuesOf('traceparent')).toEqual([])
    })
  })

  it('the access log contains the trace and span IDs', async () => {
    const { spans } = await traced.ask('GET', '/public/logged')
    const { traceId, spanId } = spanOf(spans, 'GET /public/*')
    const line = () => traced.lines.find(one => one.includes('"/public/logged"'))
    await expect.poll(line).toContain(`"trace_id":"${traceId}","span_id":"${spanId}"`)
  })

  it('the resource attributes of a span identify the process', () => {
    expect(collector.spans[0]?.resource).toMatchObject({
      'service.name': 'peage',
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'process.pid': traced.child.pid,
      'telemetry.sdk.language': 'nodejs',
    })
  })

  it('no credential, email, cookie or query string is sent to the collector', async () => {
    const user = await traced.newUser()
    const secrets = {
      cookie: 'session=c0okie-secret',
      'x-api-key': 'peage_k3y-secret',
      authorization: 'Basic b4sic-secret',
    }
    await traced.ask('GET', '/any/x?key=qu3ry-secret', { token: user.access })
    await traced.ask('GET', '/any/x?key=qu3ry-secret', { headers: secrets })
    await traced.ask('GET', '/down?key=qu3ry-secret', { headers: secrets })
    await traced.ask('GET', '/email', { token: user.access })
    await traced.ask('POST', '/api/v1/auth/register', { body: { email: user.email, password } })
    await traced.ask('POST', '/api/v1/auth/refresh', { body: { refresh_token: user.refresh } })
    await traced.ask('POST', '/api/v1/auth/logout', { body: { refresh_token: user.refresh } })
    const sent = collector.received.map(({ body }) => body).join('\n')
    expect(sent).toContain('/api/v1/auth/logout')
    for (const secret of [
      user.access,
      user.refresh,
      user.email,
      '@example.com',
      password,
      adminToken,
      'c0okie',
      'k3y-secret',
      'b4sic',
      'qu3ry',
      '$argon2',
    ]) {
      expect(sent).not.toContain(secret)
    }
  })
})

function withMore(upstream: string, sockets: string): string {
  return routes(upstream)
    .replace(
      'upstreams:',
      `upstreams:
  app: { targets: ['${sockets}'] }
  half: { targets: ['http://127.0.0.1:1', '${upstream}'], retries: 1 }`,
    )
    .concat(`  - { name: ws, path: /ws, upstream: app, websocket: true }
  - { name: retried, path: /retried, upstream: half, auth: none }
  - { name: rated, path: /rated, upstream: echo, plans: [pro], rate_limit: 100/1m }
  - { name: untold, path: /untold, upstream: echo, auth: none, headers: { request: { remove: [traceparent] } } }
`)
}
