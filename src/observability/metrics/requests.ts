// Counts completed requests by route, method and status, and measures their durations.
import { STATUS_CODES } from 'node:http'
import { counter, type Family, type Sample } from './families.ts'
import { createHistogram, type Histogram, histogram, observe } from './histogram.ts'

export interface RequestCounts {
  count(request: CountedRequest): void
  readonly families: readonly Family[]
}

interface CountedRequest {
  /** The name of a declared route or the path of an endpoint; undefined if the request matched neither. */
  readonly route: string | undefined
  /** As received. */
  readonly method: string
  /** Undefined if the client disconnected before a response began. */
  readonly status: number | undefined
  /** Milliseconds from the arrival of the request to the end of its response. */
  readonly durationMs: number
  /**
   * Whether the request is the question of a proxy (see `docs/forward-auth.md`). The proxy, not the gateway, then
   * forwards the request of the client.
   */
  readonly isQuestion?: boolean
}

interface RouteCounts {
  /** The counts by method, then by status. An unknown status is counted under its class, for example `4xx`. */
  readonly byMethod: Map<string, Map<number | string, { count: number }>>
  readonly durations: Histogram
}

/**
 * The route label for requests that matched no route. If a declared route has this name too, its requests are counted
 * in the same series.
 */
const noRoute = 'none'

/** The status that is recorded if the client disconnected before a response began. nginx uses the same number. */
const clientGone = 499

/**
 * The status of a WebSocket. The duration of a WebSocket is not measured. It is long, and would hide the durations of
 * the other requests of the route.
 */
const switchingProtocols = 101

export function createRequestCounts(): RequestCounts {
  const requests = new Map<string, RouteCounts>()
  const questions = new Map<string, RouteCounts>()
  const durations = new Map<string, Histogram>()

  function addRow(rows: Map<string, RouteCounts>, route: string): RouteCounts {
    const row = { byMethod: new Map(), durations: durations.get(route) ?? createHistogram() }
    rows.set(route, row)
    durations.set(route, row.durations)
    return row
  }

  return {
    count({ route = noRoute, method, status = clientGone, durationMs, isQuestion = false }) {
      const rows = isQuestion ? questions : requests
      const row = rows.get(route) ?? addRow(rows, route)
      const cell = row.byMethod.get(method)?.get(status) ?? cellOf(row, method, status)
      cell.count += 1
      if (status !== switchingProtocols) observe(row.durations, durationMs)
    },
    families: [
      counter('http_requests_total', 'Completed requests, by route, method and status.', () => [
        ...[...requests].flatMap(([route, row]) => samplesOf(route, row, {})),
        ...[...questions].flatMap(([route, row]) => samplesOf(route, row, { forward_auth: 'true' })),
      ]),
      histogram(
        'http_request_duration_seconds',
        'Time from the arrival of a request to the end of its response, without WebSockets.',
        'route',
        durations,
      ),
    ],
  }
}

/**
 * Finds or creates the cell in which a request is counted. All unknown methods share the label `other`. All unknown
 * statuses of one class share one label, for example `4xx`.
 */
function cellOf({ byMethod }: RouteCounts, rawMethod: string, status: number): { count: number } {
  const method = knownMethods.has(rawMethod) ? rawMethod : 'other'
  const statuses = byMethod.get(method) ?? new Map<number | string, { count: number }>()
  byMethod.set(method, statuses)
  const statusLabel = isKnown(status) ? status : `${Math.floor(status / 100)}xx`
  const cell = statuses.get(statusLabel) ?? { count: 0 }
  statuses.set(statusLabel, cell)
  return cell
}

/**
 * Returns whether the status has its own label. Other statuses share one label per class, because an upstream can send
 * any number as a status.
 */
function isKnown(status: number): boolean {
  return status === clientGone || status in STATUS_CODES
}

/** @param labels the labels in addition to route, method and status */
function samplesOf(
  route: string,
  { byMethod }: RouteCounts,
  labels: Readonly<Record<string, string>>,
): Sample[] {
  return [...byMethod].flatMap(([method, statuses]) =>
    [...statuses].map(([status, { count }]) => ({
      labels: { route, method, status: String(status), ...labels },
      value: count,
    })),
  )
}

/**
 * The methods that appear in metric labels and span names. Other methods do not appear, because a client can invent any
 * number of them. There must be few labels and span names.
 */
export const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
])
