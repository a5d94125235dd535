// The page that Prometheus reads: of this process, or of several seen as one. prom-client is known here alone.
import { AggregatorRegistry, collectDefaultMetrics, type Histogram, type Metric, Registry } from 'prom-client'
import type { Family, FamilyJson } from './families.ts'

export const contentType = Registry.PROMETHEUS_CONTENT_TYPE

export interface Exposition {
  /** In Prometheus' text format. */
  text(): Promise<string>
  /** As plain objects, for `textOfAll`. */
  gather(): Promise<readonly FamilyJson[]>
}

export function createExposition(families: readonly Family[]): Exposition {
  const registry = new Registry()
  for (const one of families) registry.registerMetric(one as unknown as Metric)
  const all = Registry.merge([registry, processMetrics()])
  return {
    text: () => all.metrics(),
    gather: async () => (await all.getMetricsAsJSON()) as unknown as FamilyJson[],
  }
}

/** One page for several processes, each metric put together by its aggregator. @param gathered of each one */
export function mergedText(gathered: readonly (readonly FamilyJson[])[]): Promise<string> {
  return AggregatorRegistry.aggregate(gathered as object[]).metrics()
}

/** What only grows, of several processes as if one had counted it. @param gathered of each one */
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

/** CPU, memory, event-loop delay and the like. Once: each would leave observers behind that nothing takes away. */
function processMetrics(): Registry {
  if (processRegistry !== undefined) return processRegistry
  processRegistry = new Registry()
  collectDefaultMetrics({ register: processRegistry })
  // What is of no kind at the moment has no series, so their number would come and go; and all is listed for them.
  for (const kind of ['handles', 'requests', 'resources']) {
    processRegistry.removeSingleMetric(`nodejs_active_${kind}`)
    processRegistry.removeSingleMetric(`nodejs_active_${kind}_total`)
  }
  // Others would appear with the first of their kind.
  const collections = processRegistry.getSingleMetric('nodejs_gc_duration_seconds') as Histogram<'kind'>
  for (const kind of ['major', 'minor', 'incremental', 'weakcb']) collections.zero({ kind })
  return processRegistry
}
