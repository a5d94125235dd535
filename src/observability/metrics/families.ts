// Defines metric families. A family has a name, a help text, and values that are read at each scrape.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /**
   * The name of the metric, if it differs from the name of the family. For example, the parts of a histogram have other
   * names.
   */
  readonly metricName?: string
}

/** How the values of several workers on one machine are merged. */
type Aggregator = 'sum' | 'min' | 'max' | 'first'

/**
 * A metric family, with only the members that prom-client's registry uses. The counters and histograms of prom-client
 * look up their labels at every increment, which costs time for each request. So the gateway uses plain numbers
 * instead.
 */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly aggregator: Aggregator
  get(): Promise<FamilyJson>
}

export interface FamilyJson extends Omit<Family, 'get'> {
  readonly values: readonly Sample[]
}

/** @param read called at each scrape */
export function family(about: Omit<Family, 'get'>, read: () => readonly Sample[]): Family {
  return { ...about, get: async () => ({ ...about, values: read() }) }
}

export function counter(name: string, help: string, read: () => readonly Sample[]): Family {
  return family({ name, help, type: 'counter', aggregator: 'sum' }, read)
}

export function gauge(
  name: string,
  help: string,
  aggregator: Aggregator,
  read: () => readonly Sample[],
): Family {
  return family({ name, help, type: 'gauge', aggregator }, read)
}

export function unlabeledSample(value: number): readonly Sample[] {
  return [{ labels: {}, value }]
}

/** Returns one sample for each entry of `counts`. The key of the entry becomes the value of the label. */
export function byLabel(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}
