// Defines metric families. A family has a name, a help text, and values that are read at each scrape.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** Set if it differs from the family's name, for example for the parts of a histogram. */
  readonly metricName?: string
}

/** How the values of the workers of one machine are merged. */
type Aggregator = 'sum' | 'min' | 'max' | 'first'

/**
 * The part of a metric that prom-client's registry uses. The counters and histograms of prom-client look up their
 * labels at every increment. The gateway uses plain numbers instead, to save that time for each request.
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

/** Returns one sample per name. The name becomes the value of the label. */
export function byLabel(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}
