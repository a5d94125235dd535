// Logs pages whose origin `cors` does not list: a browser tells only its own console why it refuses a response.
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
  /** As in the access log; undefined if the client disconnected before a decision. */
  readonly decision: string | undefined
}

export type LogOrigin = (request: EndedRequest) => void

interface Options {
  logger: Pick<Logger, 'info' | 'isLevelEnabled'>
  clock: Clock
}

const intervalMs = 60_000
/** Clients invent origins: within a minute, no more of them are written or remembered. */
const maxLines = 20
/** The longest host name, with scheme and port. */
const maxLength = 300

/** Writes one line per origin and minute. */
export function createOriginLog({ logger, clock }: Options): LogOrigin {
  /** When each origin was written, the oldest first. */
  const written = new Map<string, number>()

  function isDue(origin: string): boolean {
    const now = clock.now()
    for (const [earlier, atMs] of written) {
      // A clock that was set back must not silence an origin until it catches up.
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
    // Without `cors`, the service decides about the requests that it receives.
    if (cors === undefined && (decision === undefined || decision === 'forwarded')) return
    const isWebSocket = 'isWebSocket' in routing && routing.isWebSocket
    if (isWebSocket || !isCrossOrigin(origin, headers, host) || !isDue(origin)) return
    const route = 'route' in routing ? routing.route : undefined
    const key = route?.cors === undefined ? 'server.cors.origins' : `routes.${route.name}.cors.origins`
    const text = cors === undefined ? 'page of another origin, and cors is not configured' : notListed
    logger.info({ origin, key, ...(route === undefined ? {} : { route: route.name }) }, text)
  }
}

const notListed = 'page of an origin that cors does not list'

/** CORS does not concern a page of the gateway's own origin, a navigation, or a request without CORS mode. */
function isCrossOrigin(origin: string, headers: IncomingHttpHeaders, host: string): boolean {
  const mode = headers['sec-fetch-mode']
  if (headers['sec-fetch-site'] === 'same-origin' || (mode !== undefined && mode !== 'cors')) return false
  return origin.replace(/^https?:\/\//, '') !== host.toLowerCase()
}

/** Whether a browser may send it and `cors.origins` may list it. */
function isOrigin(text: string): boolean {
  if (text.length > maxLength || text === '*') return false
  try {
    return parseOrigin(text) === text
  } catch {
    return false
  }
}
