// Tests the page that Prometheus scrapes. The tests count events directly, without a running gateway.
import { describe, expect, it } from 'vitest'
import { mergedText } from '../../../src/observability/metrics/exposition.ts'
import { createMetrics, type Metrics } from '../../../src/observability/metrics/metrics.ts'
import { readPage } from '../../support/scrape.ts'

function create(): Metrics {
  const pool = { total: 3, idle: 2, waiting: 1, max: 10 }
  return createMetrics({ version: '1.2.3', stores: { postgresPool: () => pool, isRedisUp: () => true } })
}

const read = async (metrics: Metrics) => readPage(await metrics.text())
const bucket = (le: string) => ['http_request_duration_seconds_bucket', { route: 'a', le }] as const

describe('requests', () => {
  const request = { route: 'a', method: 'GET', status: 200, durationMs: 1 }

  it('are counted in the bucket of their duration and in all larger buckets', async () => {
    const metrics = create()
    for (const durationMs of [0, 1, 1.001, 24.9, 29_999, 30_001]) {
      metrics.requests.count({ ...request, durationMs })
    }
    const page = await read(metrics)
    const counts = ['0.001', '0.0025', '0.025', '10', '30', '+Inf'].map(le => page.value(...bucket(le)))
    expect(counts).toEqual([2, 3, 4, 4, 5, 6])
    expect(page.value('http_request_duration_seconds_count', { route: 'a' })).toBe(6)
    expect(page.value('http_request_duration_seconds_sum', { route: 'a' })).toBeCloseTo(60.026901, 9)
  })

  it('with uncommon methods are counted together as "other"', async () => {
    const metrics = create()
    for (const method of ['PROPFIND', 'MKCOL', 'QUERY', 'PROPFIND']) {
      metrics.requests.count({ ...request, method })
    }
    const page = await read(metrics)
    expect(page.value('http_requests_total', { route: 'a', method: 'other', status: '200' })).toBe(4)
    expect(page.sum('http_requests_total')).toBe(4)
  })

  it('are counted under their exact status if this status is standard, otherwise under a class such as "2xx"', async () => {
    const metrics = create()
    for (const status of [200, 299, 298, 418, 499, 599, 599, 999])
      metrics.requests.count({ ...request, status })
    const page = await read(metrics)
    const count = (status: string) => page.value('http_requests_total', { route: 'a', method: 'GET', status })
    expect(['200', '418', '499', '2xx', '5xx', '9xx'].map(count)).toEqual([1, 1, 1, 2, 2, 1])
    expect(page.sum('http_requests_total')).toBe(8)
    expect(page.value('http_request_duration_seconds_count', { route: 'a' })).toBe(8)
  })

  it('without a route are counted under the route "none", together with requests of a route named "none"', async () => {
    const metrics = create()
    metrics.requests.count({ ...request, route: undefined })
    metrics.requests.count({ ...request, route: 'none' })
    const page = await read(metrics)
    expect(page.value('http_requests_total', { route: 'none', method: 'GET', status: '200' })).toBe(2)
  })

  it('are counted but not timed if they became WebSockets', async () => {
    const metrics = create()
    metrics.requests.count({ ...request, status: 101, durationMs: 3_600_000 })
    const page = await read(metrics)
    expect(page.value('http_requests_total', { route: 'a', method: 'GET', status: '101' })).toBe(1)
    expect(page.value('http_request_duration_seconds_count', { route: 'a' })).toBe(0)
  })
})

describe('reloads', () => {
  it('are counted from 0, and before the first reload, peage_config_last_reload_successful is 1', async () => {
    const metrics = create()
    const before = await read(metrics)
    expect(before.series.get('peage_config_reloads_total{result="success"}')).toBe(0)
    expect(before.series.get('peage_config_reloads_total{result="failure"}')).toBe(0)
    expect(before.value('peage_config_last_reload_successful')).toBe(1)
    metrics.counters.countReload('success')
    metrics.counters.countReload('refused')
    const refused = await read(metrics)
    expect(refused.value('peage_config_reloads_total', { result: 'success' })).toBe(1)
    expect(refused.value('peage_config_reloads_total', { result: 'failure' })).toBe(1)
    expect(refused.value('peage_config_last_reload_successful')).toBe(0)
    metrics.counters.countReload('success')
    expect((await read(metrics)).value('peage_config_last_reload_successful')).toBe(1)
  })

  it('keep all counts; while an old and a new gateway run, their open streams are added up', async () => {
    const metrics = create()
    const gateway = (target: string, streams: number) => ({
      targets: () => [{ upstream: 'app', target, isHealthy: true }],
      openStreams: () => ({ web_socket: streams, event_stream: 0 }),
      pendingRevocations: () => streams,
      isChangeFeedFresh: () => true,
    })
    const forget = metrics.register(gateway('http://old', 2))
    metrics.upstream('app').counts[0] = 1
    metrics.register(gateway('http://new', 1))
    metrics.upstream('app')
    const both = await read(metrics)
    expect(both.value('peage_open_streams', { kind: 'web_socket' })).toBe(3)
    expect(both.value('peage_pending_logouts')).toBe(3)
    expect([...both.series.keys()].filter(id => id.startsWith('peage_upstream_healthy'))).toEqual([
      'peage_upstream_healthy{target="http://new",upstream="app"}',
    ])
    expect(both.value('peage_upstream_duration_seconds_count', { upstream: 'app' })).toBe(1)
    forget()
    expect((await read(metrics)).value('peage_pending_logouts')).toBe(1)
  })
})

describe('a target that an upstream contains twice', () => {
  it.each([
    [true, false],
    [false, true],
  ])(
    'has only one series, which reports the target as healthy if at least one of the two entries is healthy (%s, %s)',
    async (...well) => {
      const metrics = create()
      metrics.register({
        targets: () => well.map(isHealthy => ({ upstream: 'app', target: 'http://one', isHealthy })),
        openStreams: () => ({ web_socket: 0, event_stream: 0 }),
        pendingRevocations: () => 0,
        isChangeFeedFresh: () => false,
      })
      const page = await read(metrics)
      expect(page.value('peage_upstream_healthy', { upstream: 'app', target: 'http://one' })).toBe(1)
      expect(page.value('peage_change_feed_trusted')).toBe(0)
    },
  )
})

describe('several processes', () => {
  it('share one page, which adds up counts and reports a good state only if all processes report it', async () => {
    const [one, two] = [create(), create()]
    const gateway = (isHealthy: boolean, pending: number) => ({
      targets: () => [{ upstream: 'app', target: 'http://one', isHealthy }],
      openStreams: () => ({ web_socket: 1, event_stream: 2 }),
      pendingRevocations: () => pending,
      isChangeFeedFresh: () => true,
    })
    one.register(gateway(true, 2))
    two.register(gateway(false, 3))
    for (const metrics of [one, one, two]) {
      metrics.requests.count({ route: 'a', method: 'GET', status: 200, durationMs: 2 })
      metrics.counters.guards.plan.pass += 1
    }
    one.counters.countReload('success')
    two.counters.countReload('refused')

    // Processes exchange their metrics as JSON, so the test also converts the metrics to JSON and back.
    const gathered = await Promise.all([one, two].map(metrics => metrics.gather()))
    const page = readPage(await mergedText(JSON.parse(JSON.stringify(gathered))))
    expect(page.value('http_requests_total', { route: 'a', method: 'GET', status: '200' })).toBe(3)
    expect(page.value(...bucket('0.001'))).toBe(0)
    expect(page.value(...bucket('0.0025'))).toBe(3)
    expect(page.value(...bucket('+Inf'))).toBe(3)
    expect(page.value('http_request_duration_seconds_sum', { route: 'a' })).toBeCloseTo(0.006, 9)
    expect(page.value('peage_guard_decisions_total', { guard: 'plan', decision: 'pass' })).toBe(3)
    expect(page.value('peage_upstream_healthy', { upstream: 'app', target: 'http://one' })).toBe(0)
    expect(page.value('peage_open_streams', { kind: 'event_stream' })).toBe(4)
    expect(page.value('peage_pending_logouts')).toBe(5)
    expect(page.value('peage_postgres_pool_connections')).toBe(6)
    expect(page.value('peage_redis_up')).toBe(1)
    expect(page.value('peage_config_last_reload_successful')).toBe(0)
    expect(page.value('peage_build_info', { version: '1.2.3', node_version: process.version })).toBe(1)
    const alone = await read(one)
    const names = (of: typeof page) =>
      [...of.series.keys()].map(id => id.replace(/\{.*/, '')).filter(name => /^(http|peage)_/.test(name))
    expect(new Set(names(page))).toEqual(new Set(names(alone)))
  })
})

describe('the process', () => {
  it('has metrics of its CPU, memory and event loop, and each series exists from the start', async () => {
    const { series } = await read(create())
    const names = new Set([...series.keys()].map(id => id.replace(/\{.*/, '')))
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_heap_size_used_bytes',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_gc_duration_seconds_count',
    ]) {
      expect(names).toContain(name)
    }
    expect([...names].filter(name => name.startsWith('nodejs_active_'))).toEqual([])
    expect([...series.keys()].filter(id => id.startsWith('nodejs_gc_duration_seconds_count')).sort()).toEqual(
      ['incremental', 'major', 'minor', 'weakcb'].map(
        kind => `nodejs_gc_duration_seconds_count{kind="${kind}"}`,
      ),
    )
  })
})
