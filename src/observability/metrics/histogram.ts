// Implements histograms of durations. The cumulative counts that Prometheus expects are calculated only at a scrape.
import { type Family, family, type Sample } from './families.ts'

export interface Histogram {
  /** The number of durations in each bucket, not cumulative. The last bucket is for durations above all bounds. */
  readonly counts: Float64Array
  sumMs: number
}

/**
 * The upper bounds of the buckets. The time that the gateway adds to a request is below the first bound. The last bound
 * is 30 s, because the default timeout of an upstream ends a longer request. There are two or three bounds per decade,
 * so the p99 is accurate to about a factor of two.
 */
const bucketBoundsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

const bucketBoundsMs = bucketBoundsSeconds.map(bound => bound * 1000)

export function createHistogram(): Histogram {
  return { counts: new Float64Array(bucketBoundsSeconds.length + 1), sumMs: 0 }
}

export function observe(durations: Histogram, durationMs: number): void {
  let bucket = 0
  // The search starts at the lowest bucket, because most requests belong to the first few buckets.
  while (bucket < bucketBoundsMs.length && durationMs > (bucketBoundsMs[bucket] as number)) bucket += 1
  ;(durations.counts[bucket] as number) += 1
  durations.sumMs += durationMs
}

/** @param rows the histogram for each value of `label` */
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
