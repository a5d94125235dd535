// Tests that docs/metrics-and-logs.md lists exactly the metrics of the gateway, each with its type and labels.
import { describe, expect, it } from 'vitest'
import { createMetrics } from '../../src/observability/metrics/metrics.ts'
import { codeRows, plain } from './read-tables.ts'

/**
 * Returns `[name, type, labels]` of every metric. A metric shows its labels only after it has a value, so this function
 * first records one event for each metric.
 */
async function exposed(): Promise<string[][]> {
  const metrics = createMetrics({
    version: '1',
    stores: { postgresPool: () => ({ total: 1, idle: 1, waiting: 0, max: 1 }), isRedisUp: () => true },
  })
  metrics.requests.count({ route: 'a', method: 'GET', status: 200, durationMs: 1 })
  metrics.upstream('a')
  metrics.counters.countAuth('login', 'success')
  metrics.counters.countProviderRequest('company', 'ok')
  metrics.counters.mails.count('reset', 'sent')
  metrics.register({
    targets: () => [{ upstream: 'a', target: 'http://a', isHealthy: true }],
    openStreams: () => ({ web_socket: 0, event_stream: 0 }),
    pendingRevocations: () => 0,
    isChangeFeedFresh: () => true,
  })
  return (await metrics.gather())
    .filter(({ name }) => /^(http|peage)_/.test(name))
    .map(({ name, type, values }) => {
      const labels = Object.keys(values[0]?.labels ?? {}).filter(label => label !== 'le')
      return [name, type, labels.join(' ')]
    })
}

describe('docs/metrics-and-logs.md', () => {
  const rows = codeRows('metrics-and-logs.md').filter(([name]) => /^`(http|peage)_/.test(name ?? ''))

  it('contains all metrics of the gateway and no other metric, each once with its type and labels', async () => {
    const written = rows.map(([name, type, labels = '']) => [
      plain(name),
      String(type),
      [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label).join(' '),
    ])
    const known = await exposed()
    expect(known.length).toBeGreaterThan(18)
    expect(written.sort()).toEqual(known.sort())
  })

  it('describes each metric', () => {
    expect(rows.filter(([, , , says]) => (says ?? '').length < 10)).toEqual([])
  })
})
