// Scrapes the metrics of the admin listener like Prometheus, and parses the series.

export interface Scrape {
  readonly page: string
  /** The values of all series. A key is the name with the sorted labels, for example `name{a="1",b="2"}`. */
  readonly series: ReadonlyMap<string, number>
  /** Returns the value of a series; 0 if it does not exist. */
  value(name: string, labels?: Readonly<Record<string, string>>): number
  /** Returns the sum of all series that have this name and these labels. Series with additional labels are included. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number
}

/** @param admin the address of the admin listener */
export async function scrape(admin: string): Promise<Scrape> {
  const answer = await fetch(`${admin}/metrics`)
  if (answer.status !== 200) throw new Error(`/metrics responded with ${answer.status}`)
  return readPage(await answer.text())
}

/** @throws Error if two lines belong to the same series, because Prometheus would reject such a page */
export function readPage(page: string): Scrape {
  const series = new Map<string, number>()
  const samples: { name: string; labels: Record<string, string>; value: number }[] = []
  for (const line of page.split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [, name = '', text = '', number = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === '') throw new Error(`not a sample: ${line}`)
    const labels = Object.fromEntries(
      [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key, value]),
    )
    const id = idOf(name, labels)
    if (series.has(id)) throw new Error(`duplicate series: ${id}`)
    const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number)
    series.set(id, value)
    samples.push({ name, labels, value })
  }
  return {
    page,
    series,
    value: (name, labels = {}) => series.get(idOf(name, labels)) ?? 0,
    sum: (name, labels = {}) =>
      samples
        .filter(sample => sample.name === name)
        .filter(sample => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
        .reduce((sum, { value }) => sum + value, 0),
  }
}

function idOf(name: string, labels: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return sorted.length === 0
    ? name
    : `${name}{${sorted.map(([key, value]) => `${key}="${value}"`).join(',')}}`
}
