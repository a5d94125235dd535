// Durations in buckets: two additions for each, and Prometheus' cumulative form only when it asks.
import { type Family, family, type Sample } from './families.ts'

export interface Histogram {
  /** By bucket, not cumulative; the last is for what took longer than all bounds. */
  readonly counts: Float64Array
  /** Milliseconds. */
  sumMs: number
}

/**
 * Seconds. The gateway's own part of a request is below the first; 30 s is how long an upstream may take by default, so
 * that what stands behind it was cut off. Two or three a decade tell a p99 to within a factor of two or so.
 */
const bucketBoundsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

const bucketBoundsMs = bucketBoundsSeconds.map(bound => bound * 1000)

export function createHistogram(): Histogram {
  return { counts: new Float64Array(bucketBoundsSeconds.length + 1), sumMs: 0 }
}

/** @param duration milliseconds */
export function observe(durations: Histogram, durationMs: number): void {
  let bucket = 0
  // From the shortest on: most requests end in the first few.
  while (bucket < bucketBoundsMs.length && durationMs > (bucketBoundsMs[bucket] as number)) bucket += 1
  ;(durations.counts[bucket] as number) += 1
  durations.sumMs += durationMs
}

/** @param rows by the value of the label */
export function histogram(
  name: string,
  help: string,
  label: string,
  rows: ReadonlyMap<string, Histogram>,
): Family {
  return family({ name, help, type: 'histogram', aggregator: 'sum' }, () =>
    [...rows].flatMap(([value, durations]) => samplesOf(name, { [label]: value }, durations)),
  )
}

function samplesOf(name: string, labels: Record<string, string>, { counts, sumMs }: Histogram): Sample[] {
  let count = 0
  const buckets = [...counts].map((inBucket, index) => {
    count += inBucket
    const le = String(bucketBoundsSeconds[index] ?? '+Inf')
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sumMs / 1000 },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
