// Creates the metrics page for Prometheus, for one process or merged from several. Only this file depends on
// prom-client.
import { AggregatorRegistry, collectDefaultMetrics, type Histogram, type Metric, Registry } from 'prom-client'
import type { Family, FamilyJson } from './families.ts'

export const contentType = Registry.PROMETHEUS_CONTENT_TYPE

export interface Exposition {
  /** Returns the metrics in Prometheus's text format. */
  text(): Promise<string>
  /** Returns the metrics as plain objects, for `mergedText` and `mergedCounters`. */
  gather(part?: MetricsPart): Promise<readonly FamilyJson[]>
}

/**
 * `own` selects only the metrics that the gateway defines. `all` also selects the metrics of the Node process. Reading
 * the event-loop delays of the process resets them.
 */
export type MetricsPart = 'all' | 'own'

export function createExposition(families: readonly Family[]): Exposition {
  const own = new Registry()
  for (const one of families) own.registerMetric(one as unknown as Metric)
  const parts = { own, all: Registry.merge([own, processMetrics()]) }
  return {
    text: () => parts.all.metrics(),
    gather: async (part = 'all') => (await parts[part].getMetricsAsJSON()) as unknown as FamilyJson[],
  }
}

/**
 * Merges the metrics of several processes. The definition of each metric specifies how its values are merged.
 * @param gathered the metrics of each process
 */
export function mergedText(gathered: readonly (readonly FamilyJson[])[]): Promise<string> {
  return AggregatorRegistry.aggregate(gathered as object[]).metrics()
}

/**
 * Returns the counters and histograms whose values are added up. The result is the same as if one process had counted
 * everything.
 */
export async function mergedCounters(
  gathered: readonly (readonly FamilyJson[])[],
): Promise<readonly FamilyJson[]> {
  const counted = gathered.map(families =>
    families.filter(({ type, aggregator }) => type !== 'gauge' && aggregator === 'sum'),
  )
  return (await AggregatorRegistry.aggregate(
    counted as object[],
  ).getMetricsAsJSON()) as unknown as FamilyJson[]
}

let processRegistry: Registry | undefined

/**
 * Returns the metrics of the Node process. They are created only once, because each creation adds observers that cannot
 * be removed.
 */
function processMetrics(): Registry {
  if (processRegistry !== undefined) return processRegistry
  processRegistry = new Registry()
  collectDefaultMetrics({ register: processRegistry })
  // Removes the metrics of active handles, requests and resources. A type of handle, request or resource has a series
  // only while it is in use. So series would appear and disappear. Each scrape would also have to list everything that
  // is in use.
  for (const kind of ['handles', 'requests', 'resources']) {
    processRegistry.removeSingleMetric(`nodejs_active_${kind}`)
    processRegistry.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
  // Sets the count of each kind of garbage collection to zero. Otherwise, the series of a kind would appear only after
  // the first collection of this kind.
  const collections = processRegistry.getSingleMetric('nodejs_gc_duration_seconds') as Histogram<'kind'>
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) collections.zero({ kind })
  return processRegistry
}
