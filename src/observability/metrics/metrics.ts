// Creates all metrics of this process. A reload of the configuration does not reset them.
import { type Counters, createCounters } from './counters.ts'
import { createExposition, type Exposition } from './exposition.ts'
import { gauge } from './families.ts'
import { createGauges, type Gauges, type StorageGauges } from './gauges.ts'
import { createHistogram, type Histogram, histogram } from './histogram.ts'
import { createRequestCounts, type RequestCounts } from './requests.ts'

export interface Metrics extends Exposition {
  readonly requests: Pick<RequestCounts, 'count'>
  readonly counters: Omit<Counters, 'families'>
  upstream(name: string): Histogram
  readonly register: Gauges['register']
}

interface Options {
  version: string
  stores: StorageGauges
}

export function createMetrics({ version, stores }: Options): Metrics {
  const requests = createRequestCounts()
  const counters = createCounters()
  const gauges = createGauges(stores)
  const upstreams = new Map<string, Histogram>()
  const build = [{ labels: { version, node_version: process.version }, value: 1 }]
  return {
    requests,
    counters,
    upstream(name) {
      const durations = upstreams.get(name) ?? createHistogram()
      upstreams.set(name, durations)
      return durations
    },
    register: gauges.register,
    ...createExposition([
      ...requests.families,
      histogram(
        'peage_upstream_duration_seconds',
        'Time of each attempt, from sending the request to the upstream until the response headers or a failure.',
        'upstream',
        upstreams,
      ),
      ...counters.families,
      ...gauges.families,
      gauge(
        'peage_build_info',
        'Always 1. The labels contain the versions of Péage and Node.',
        'first',
        () => build,
      ),
    ]),
  }
}
