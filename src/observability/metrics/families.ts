// A metric as Prometheus is told of it: its name and meaning, and its numbers, read when they are asked for.

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
  /** Where it is not the family's own: the parts of a histogram have names of theirs. */
  readonly metricName?: string
}

/** How the workers of one machine are seen as one. */
export type Aggregator = 'sum' | 'min' | 'max' | 'first'

/**
 * What prom-client's registry asks of a metric. Its own counters and histograms put their labels together and look
 * them up at every increment, which a request would pay for; ours are plain numbers where they are counted.
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

/** The one sample of a metric without labels. */
export function unlabeledSample(value: number): readonly Sample[] {
  return [{ labels: {}, value }]
}

/** A sample for each name, in a label of that meaning. */
export function byLabel(label: string, counts: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
}
