// A metric family as Prometheus sees it: a name, a help text, and values that are read at each scrape.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** If it differs from the family's name: the parts of a histogram have names of their own. */
  readonly metricName?: string
}

/** How the values of one machine's workers are merged. */
type Aggregator = 'sum' | 'min' | 'max' | 'first'

/**
 * What prom-client's registry needs of a metric. Its own counters and histograms build and look up their labels at
 * every increment, which each request would pay for; ours are plain numbers.
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

/** The single sample of a metric without labels. */
export function unlabeledSample(value: number): readonly Sample[] {
  return [{ labels: {}, value }]
}

/** One sample per name, which becomes the value of the label. */
export function byLabel(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}
