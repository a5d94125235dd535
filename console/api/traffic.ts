// Reads `/metrics` twice, and calculates the rate of requests and the share of failures for each route.

export interface Counts {
  readonly requests: number
  readonly failures: number
}

export interface Reading {
  readonly atMs: number
  readonly routes: ReadonlyMap<string, Counts>
}

const line = /^http_requests_total\{(.*)\} (\S+)$/
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g

export async function readTraffic(): Promise<Reading> {
  const text = await (await fetch('/metrics')).text()
  return { atMs: Date.now(), routes: parseTraffic(text) }
}

/** @param text the metrics in Prometheus' exposition format */
export function parseTraffic(text: string): Map<string, Counts> {
  const routes = new Map<string, Counts>()
  for (const row of text.split('\n')) {
    const [, labels, value] = line.exec(row) ?? []
    if (labels === undefined) continue
    const { route = '', status = '' } = Object.fromEntries(
      [...labels.matchAll(label)].map(([, name = '', quoted = '']) => [name, unquote(quoted)]),
    )
    const count = Number(value)
    const { requests, failures } = routes.get(route) ?? { requests: 0, failures: 0 }
    routes.set(route, {
      requests: requests + count,
      failures: failures + (status.startsWith('5') ? count : 0),
    })
  }
  return routes
}

/**
 * Returns the requests per second and the share of failed requests between two readings.
 * @returns undefined if the readings cannot be compared, for example because the gateway restarted between them
 */
export function ratesBetween(before: Reading, after: Reading, route: string) {
  const seconds = (after.atMs - before.atMs) / 1_000
  const none = { requests: 0, failures: 0 }
  const [old, now] = [before.routes.get(route) ?? none, after.routes.get(route) ?? none]
  const requests = now.requests - old.requests
  if (seconds <= 0 || requests < 0) return undefined
  return {
    perSecond: requests / seconds,
    failed: requests === 0 ? 0 : (now.failures - old.failures) / requests,
  }
}

function unquote(quoted: string): string {
  return quoted.replace(/\\(.)/g, (_, character: string) => (character === 'n' ? '\n' : character))
}
