// Everything that is counted in this process, for as long as it runs: a reload of the configuration keeps it.

import { createTallies, type Tallies } from './counters.ts'
import { createExposition, type Exposition } from './exposition.ts'
import { gauge } from './families.ts'
import { createStates, type States, type StoreStates } from './gauges.ts'
import { createDurations, type Durations, histogram } from './histogram.ts'
import { createRequestCounts, type RequestCounts } from './requests.ts'

export interface Metrics extends Exposition {
  readonly requests: Pick<RequestCounts, 'count'>
  readonly tallies: Omit<Tallies, 'families'>
  /** Where the answers of an upstream are timed, by its name. */
  upstream(name: string): Durations
  readonly watch: States['watch']
}

interface Parts {
  /** The program's. */
  version: string
  stores: StoreStates
}

export function createMetrics({ version, stores }: Parts): Metrics {
  const requests = createRequestCounts()
  const tallies = createTallies()
  const states = createStates(stores)
  const upstreams = new Map<string, Durations>()
  const build = [{ labels: { version, node_version: process.version }, value: 1 }]
  return {
    requests,
    tallies,
    upstream(name) {
      const durations = upstreams.get(name) ?? createDurations()
      upstreams.set(name, durations)
      return durations
    },
    watch: states.watch,
    ...createExposition([
      ...requests.families,
      histogram(
        'peage_upstream_duration_seconds',
        'Time from sending a request to an upstream to the head of its answer, or to its failure. Each try counts.',
        'upstream',
        upstreams,
      ),
      ...tallies.families,
      ...states.families,
      gauge('peage_build_info', 'Always 1; the labels say what runs.', 'first', () => build),
    ]),
  }
}
