// Logs the origins of web pages that `cors` does not allow. Without this log, an operator would not see why a browser
// blocks a request. The browser shows the reason only in its own console.
import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { parseOrigin } from '../config/formats/addresses.ts'
import type { RoutingDecision } from '../gate/routing/decision.ts'

interface EndedRequest {
  readonly headers: IncomingHttpHeaders
  /** The Host header, as received. */
  readonly host: string
  readonly routing: RoutingDecision
  /** The decision, as in the access log; undefined if the client disconnected before a decision. */
  readonly decision: string | undefined
}

export type LogOrigin = (request: EndedRequest) => void

interface Options {
  logger: Pick<Logger, 'info' | 'isLevelEnabled'>
  clock: Clock
}

const intervalMs = 60_000
/**
 * The maximum number of origins that are logged and stored per minute. It is needed because clients can invent origins.
 */
const maxLines = 20
/** The maximum length of an origin. It is enough for the longest host name with scheme and port. */
const maxLength = 300

/** Logs at most one line per origin and minute. */
export function createOriginLog({ logger, clock }: Options): LogOrigin {
  /** The time at which each origin was logged, oldest first. */
  const written = new Map<string, number>()

  function isDue(origin: string): boolean {
    const now = clock.now()
    for (const [earlier, atMs] of written) {
      // If the clock was set back, the stored times are in the future. They are deleted, so that the origins are logged
      // again at once.
      if (now >= atMs && now - atMs < intervalMs) break
      written.delete(earlier)
    }
    if (written.has(origin) || written.size >= maxLines || !isOrigin(origin)) return false
    written.set(origin, now)
    return true
  }

  return ({ headers, host, routing, decision }) => {
    const { origin } = headers
    if (origin === undefined || !logger.isLevelEnabled('info')) return
    const { cors } = routing
    if (cors?.['access-control-allow-origin'] !== undefined) return
    // Without `cors`, the upstream decides about the origin of a forwarded request, so nothing is logged.
    if (cors === undefined && (decision === undefined || decision === 'forwarded')) return
    const isWebSocket = 'isWebSocket' in routing && routing.isWebSocket
    if (isWebSocket || !isCrossOrigin(origin, headers, host) || !isDue(origin)) return
    const route = 'route' in routing ? routing.route : undefined
    const key = route?.cors === undefined ? 'server.cors.origins' : `routes.${route.name}.cors.origins`
    const text =
      cors === undefined ? 'request from a page of another origin, but cors is not configured' : notListed
    logger.info({ origin, key, ...(route === undefined ? {} : { route: route.name }) }, text)
  }
}

const notListed = 'request from a page whose origin is not in cors.origins'

/**
 * Returns whether CORS applies. It does not apply to pages of the gateway's own origin. It also does not apply to
 * requests with a mode other than `cors`, for example page loads.
 */
function isCrossOrigin(origin: string, headers: IncomingHttpHeaders, host: string): boolean {
  const mode = headers['sec-fetch-mode']
  if (headers['sec-fetch-site'] === 'same-origin' || (mode !== undefined && mode !== 'cors')) return false
  return origin.replace(/^https?:\/\//, '') !== host.toLowerCase()
}

/** Returns whether a browser can send this origin and `cors.origins` can contain it. */
function isOrigin(text: string): boolean {
  if (text.length > maxLength || text === '*') return false
  try {
    return parseOrigin(text) === text
  } catch {
    return false
  }
}
