// Tests the overview, which shows the counters of all processes for the last 15 minutes in steps of 10 s.
import { expect, it } from 'vitest'
import { createOverviewHistory } from '../../src/admin/overview.ts'
import { createMetrics, type Metrics } from '../../src/observability/metrics/metrics.ts'
import { quantileMs } from '../../src/observability/metrics/totals.ts'

const clock = { at: 1_000_000_000_000, now: () => clock.at }
const newMetrics = () => createMetrics({ version: '0', stores: {} as never })
const count = ({ requests }: Metrics, status: number, durationMs = 2, times = 1) => {
  for (let i = 0; i < times; i += 1) requests.count({ route: 'r', method: 'GET', status, durationMs })
}

it('each step of the history contains the sum over all processes, and steps before the first sample are null', async () => {
  const workers = [newMetrics(), newMetrics()] as const
  const [one, other] = workers
  const history = createOverviewHistory({
    clock,
    gather: () => Promise.all(workers.map(each => each.gather('own'))),
  })
  count(one, 500)
  await history.sample()
  expect(history.series().requests).toEqual(Array.from({ length: 90 }, () => null))

  count(one, 200, 2, 3)
  count(other, 503, 40)
  one.counters.guards.plan.refuse += 2
  other.counters.identityCache.hit += 3
  other.counters.identityCache.miss += 1
  clock.at += 10_000
  await history.sample()
  clock.at += 9_990
  await history.sample()
  const series = history.series()
  expect(series.at).toHaveLength(90)
  expect(series.at.at(-1)).toBe(1_000_000_020)
  expect(series.at[1]).toBe((series.at[0] ?? 0) + 10)
  expect([series.requests.slice(-3), series.errors.slice(-3)]).toEqual([
    [null, 4, 0],
    [null, 1, 0],
  ])
  expect(series.refused.plan?.slice(-2)).toEqual([2, 0])
  expect(series.cache_hit_rate.slice(-2)).toEqual([0.75, null])
  expect(series.p50_ms.at(-1)).toBeNull()
  expect(series.p50_ms.at(-2)).toBeGreaterThan(1)
  expect(series.p50_ms.at(-2)).toBeLessThan(2.5)
  expect(series.p99_ms.at(-2)).toBeGreaterThan(25)

  // The clock moves by two steps before the next sample, so both steps have no value. The next 90 samples (15 minutes)
  // replace all earlier steps.
  count(one, 200)
  clock.at += 20_000
  await history.sample()
  expect(history.series().requests.slice(-4)).toEqual([4, 0, null, null])
  for (let i = 0; i < 90; i += 1) {
    clock.at += 10_000
    count(one, 200)
    await history.sample()
  }
  expect(history.series().requests).toEqual(Array.from({ length: 90 }, () => 1))
})

it('if the system clock is set back, the overview starts a new history', async () => {
  const metrics = newMetrics()
  const history = createOverviewHistory({ clock, gather: async () => [await metrics.gather('own')] })
  await history.sample()
  clock.at += 10_000
  await history.sample()
  const { at, requests } = history.series()
  expect(requests.at(-1)).toBe(0)
  clock.at -= 100_000
  count(metrics, 200)
  await history.sample()
  expect(history.series().at.at(-1)).toBe((at.at(-1) ?? 0) - 100)
  expect(history.series().requests).toEqual(Array.from({ length: 90 }, () => null))
  clock.at += 10_000
  count(metrics, 200, 2, 3)
  await history.sample()
  expect(history.series().requests.slice(-2)).toEqual([null, 3])
})

it('if a quantile is above the largest bucket bound of the histogram, the overview reports this bound', () => {
  const durations = new Map([
    [1, 0],
    [30, 0],
    [Number.POSITIVE_INFINITY, 4],
  ])
  expect(quantileMs(durations, 0.5)).toBe(30_000)
  expect(quantileMs(new Map(), 0.5)).toBeNull()
})
