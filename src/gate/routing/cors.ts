// Decides which web pages of other origins may read responses (CORS protocol of the Fetch standard).
import { type IncomingMessage, METHODS } from 'node:http'
import { everyOrigin } from '../../config/formats/addresses.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import { type Route, usualMethods } from './route.ts'

type CorsConfig = NonNullable<RouteConfig['cors']>

/** Response headers by lower-case name. */
export type CorsHeaders = Readonly<Record<string, string>>

/** A preflight: the request that a browser sends before a cross-origin request to check whether it is allowed. */
export interface Preflight {
  /** The method of the request that follows the preflight. */
  readonly method: string
  /** The header names of the request that follows, as received in the preflight. */
  readonly headers: string | undefined
  readonly origin: string
}

interface CorsPolicy {
  /** Returns the headers of a response that is not a preflight response. @param origin the origin of the request */
  answer(origin: string | undefined): CorsHeaders
  /** @param methods the methods served at the path; `undefined` for every method */
  preflight(preflight: Preflight, methods: Iterable<string> | undefined): CorsHeaders
}

/**
 * Returns the policy of the route. If the route has no policy, or if there is no route, returns the policy of the
 * server.
 */
export type CorsPolicies = (route: Route | undefined) => CorsPolicy | undefined

/** @returns `undefined` if CORS is not configured; the gateway then ignores the header `Origin` */
export function createCorsPolicies(
  server: CorsConfig | undefined,
  routes: readonly Route[],
): CorsPolicies | undefined {
  const ofServer = server && createCorsPolicy(server)
  const ofRoutes = new Map<Route | undefined, CorsPolicy>()
  for (const route of routes) {
    if (route.cors !== undefined) ofRoutes.set(route, createCorsPolicy(route.cors))
  }
  if (ofServer === undefined && ofRoutes.size === 0) return undefined
  return route => ofRoutes.get(route) ?? ofServer
}

/**
 * Returns undefined if the request is not a preflight. Only an `OPTIONS` request with `Origin` and
 * `Access-Control-Request-Method` is a preflight.
 */
export function readPreflight({
  method,
  headers,
}: Pick<IncomingMessage, 'method' | 'headers'>): Preflight | undefined {
  if (method !== 'OPTIONS') return undefined
  const requested = headers['access-control-request-method']
  if (!headers.origin || !requested) return undefined
  return { method: requested, headers: headers['access-control-request-headers'], origin: headers.origin }
}

/** Response headers that only the gateway may set. If the upstream set them too, browsers would accept none of them. */
export const replacedHeaders: ReadonlySet<string> = new Set(
  ['origin', 'credentials', 'methods', 'headers', 'private-network']
    .map(subject => `access-control-allow-${subject}`)
    .concat('access-control-expose-headers', 'access-control-max-age'),
)

const exposedHeaders = ['X-Peage-Error', 'X-Request-Id', 'Retry-After', 'RateLimit', 'RateLimit-Policy']

/**
 * The only CORS header of a response to a refused origin. It makes caches store a separate response for each origin.
 */
const onlyVary: CorsHeaders = { vary: 'Origin' }

function createCorsPolicy(config: CorsConfig): CorsPolicy {
  const isOpen = config.origins.includes(everyOrigin)
  const origins = new Set(config.origins)
  const names = [...exposedHeaders, ...config.expose_headers].join(', ')
  const answerTo = (origin: string): CorsHeaders => ({
    ...allowance(origin, config),
    'access-control-expose-headers': names,
  })
  // The headers are built once for each origin, because they are the same for every request.
  const answers = new Map([...origins].map(origin => [origin, answerTo(origin)]))
  return {
    answer(origin) {
      if (origin === undefined) return onlyVary
      return answers.get(isOpen ? everyOrigin : origin) ?? onlyVary
    },
    preflight({ method, headers, origin }, methods = everyMethod(method)) {
      if (!isOpen && !origins.has(origin)) return onlyVary
      return {
        ...allowance(isOpen ? everyOrigin : origin, config),
        'access-control-allow-methods': [...methods].join(', '),
        ...(headers !== undefined && isList.test(headers) ? { 'access-control-allow-headers': headers } : {}),
        'access-control-max-age': String(Math.floor(config.max_age / 1000)),
      }
    },
  }
}

function allowance(origin: string, { credentials }: CorsConfig): CorsHeaders {
  return {
    ...onlyVary,
    'access-control-allow-origin': origin,
    ...(credentials ? { 'access-control-allow-credentials': 'true' } : {}),
  }
}

/**
 * Returns the usual methods and `method`. `*` is not used, because for a request with credentials, browsers would read
 * it as the name of a method.
 */
function everyMethod(method: string): Iterable<string> {
  return new Set(METHODS.includes(method) ? [...usualMethods, method] : usualMethods)
}

/** Matches a list of header names (RFC 9110 §5.6.1). A text that does not match is not sent back to the client. */
const isList = /^[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+$/
