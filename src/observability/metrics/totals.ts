// Adds up the metrics of all processes, for all routes and methods together.
import type { FamilyJson } from './families.ts'

export interface CounterTotals {
  readonly requests: number
  /** Requests with a 5xx response. */
  readonly errors: number
  /** Refused requests by guard. */
  readonly refused: Readonly<Record<string, number>>
  /**
   * For each upper bound, the number of requests that took at most this long. The keys are the bounds in seconds, in
   * ascending order. The last bound is infinite.
   */
  readonly durations: ReadonlyMap<number, number>
  /** The number of lookups of users, keys and sessions that the cache answered. */
  readonly hits: number
  readonly lookups: number
}

export function totalsOf(gathered: readonly (readonly FamilyJson[])[]): CounterTotals {
  const requests = { all: 0, errors: 0 }
  const refused: Record<string, number> = {}
  const durations = new Map<number, number>()
  const cache = { hits: 0, lookups: 0 }
  const readers: Record<string, (sample: FamilyJson['values'][number]) => void> = {
    http_requests_total({ labels, value }) {
      requests.all += value
      if (String(labels.status).startsWith('5')) requests.errors += value
    },
    peage_guard_decisions_total({ labels, value }) {
      const guard = String(labels.guard)
      refused[guard] = (refused[guard] ?? 0) + (labels.decision === 'refuse' ? value : 0)
    },
    http_request_duration_seconds({ metricName, labels, value }) {
      if (metricName !== 'http_request_duration_seconds_bucket') return
      const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le)
      durations.set(bound, (durations.get(bound) ?? 0) + value)
    },
    peage_identity_cache_total({ labels, value }) {
      cache.lookups += value
      if (labels.result === 'hit') cache.hits += value
    },
  }
  for (const families of gathered) {
    for (const { name, values } of families) {
      const read = readers[name]
      if (read !== undefined) for (const sample of values) read(sample)
    }
  }
  return {
    requests: requests.all,
    errors: requests.errors,
    refused,
    durations: new Map([...durations].sort(([a], [b]) => a - b)),
    ...cache,
  }
}

/**
 * Estimates a quantile in the same way as `histogram_quantile` of Prometheus. It assumes that the durations in a bucket
 * are evenly distributed.
 * @param durations the cumulative counts; the keys are the upper bounds of the buckets in seconds
 * @returns the quantile in milliseconds; null if there are no durations
 */
export function quantileMs(durations: ReadonlyMap<number, number>, quantile: number): number | null {
  const buckets = [...durations]
  const total = buckets.at(-1)?.[1] ?? 0
  if (total === 0) return null
  const rank = quantile * total
  let below = 0
  let from = 0
  for (const [to, count] of buckets) {
    // For the last bucket, no upper limit is known. So the result is the highest finite bound.
    if (to === Number.POSITIVE_INFINITY) break
    if (count >= rank) return (from + ((to - from) * (rank - below)) / (count - below)) * 1000
    below = count
    from = to
  }
  return from * 1000
}
