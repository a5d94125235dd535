// The page that Prometheus scrapes, of this process or merged from several. Only this file knows prom-client.
import { AggregatorRegistry, collectDefaultMetrics, type Histogram, type Metric, Registry } from 'prom-client'
import type { Family, FamilyJson } from './families.ts'

export const contentType = Registry.PROMETHEUS_CONTENT_TYPE

export interface Exposition {
  /** In Prometheus's text format. */
  text(): Promise<string>
  /** As plain objects, for `mergedText` and `mergedCounters`. */
  gather(part?: MetricsPart): Promise<readonly FamilyJson[]>
}

/** `own`: what the gateway counts alone. Each reading of the process's event-loop delays begins them anew. */
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

/** One page for several processes, each metric merged by its aggregator. @param gathered of each process */
export function mergedText(gathered: readonly (readonly FamilyJson[])[]): Promise<string> {
  return AggregatorRegistry.aggregate(gathered as object[]).metrics()
}

/** The metrics that only grow, merged as if one process had counted them. @param gathered of each process */
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

/** CPU, memory, event-loop delay and the like. Created once: each creation leaves observers that nothing removes. */
function processMetrics(): Registry {
  if (processRegistry !== undefined) return processRegistry
  processRegistry = new Registry()
  collectDefaultMetrics({ register: processRegistry })
  // A kind without instances has no series, so series would come and go; and each scrape would list every instance.
  for (const kind of ['handles', 'requests', 'resources']) {
    processRegistry.removeSingleMetric(`nodejs_active_${kind}`)
    processRegistry.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
  // Without this, a series would appear only with the first collection of its kind.
  const collections = processRegistry.getSingleMetric('nodejs_gc_duration_seconds') as Histogram<'kind'>
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) collections.zero({ kind })
  return processRegistry
}
