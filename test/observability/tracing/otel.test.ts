// The log shows how many spans were dropped because they did not fit into the queue of the OpenTelemetry SDK.
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { createTracing } from '../../../src/observability/tracing/otel.ts'
import { startCollector } from '../../support/collector.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllEnvs()
})

it('each log line has the number of spans that were dropped since the previous log line', async () => {
  const collector = await startCollector()
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', collector.url)
  vi.stubEnv('OTEL_BSP_MAX_QUEUE_SIZE', '2')
  vi.stubEnv('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', '2')
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '20')
  vi.useFakeTimers({ toFake: ['performance'] })
  const reasons: string[] = []
  const log = (fields: { reason?: string }) => reasons.push(String(fields.reason))
  const tracing = createTracing({ logger: { info: log, warn: log }, version: '0' })
  let ended = 0
  const end = async (spans: number) => {
    for (let i = 0; i < spans; i += 1) {
      const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/' })
      tracing
        .begin(request, {
          requestId: 'r',
          method: 'GET',
          url: '/',
          client: '::1',
          host: 'x',
          template: '/',
          route: 'r',
        })
        .end({ status: 200, decision: 'forwarded', outcome: 'complete' })
    }
    ended += spans
    const before = collector.spans.length
    await expect.poll(() => collector.spans.length).toBeGreaterThan(before)
  }
  for (let round = 0; round < 4; round += 1) await end(10)
  expect(reasons).toEqual([expect.stringMatching(/^Dropped \d+ spans/)])
  vi.advanceTimersByTime(61_000)
  // The SDK warns about dropped spans only when the queue has room again. So the test ends more spans until the SDK
  // warns.
  while (reasons.length < 2) await end(1)
  await tracing.close(2_000)
  const counts = reasons.map(reason => Number(/^Dropped (\d+) spans/.exec(reason)?.[1]))
  expect(counts).toHaveLength(2)
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(ended - collector.spans.length)
  await collector.close()
})
