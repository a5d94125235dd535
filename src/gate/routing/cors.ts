// Which web pages of other origins may read the answers (Fetch standard, CORS protocol; CONTRACT §6).
import { type IncomingMessage, METHODS } from 'node:http'
import { mapSteps, type Steps } from '../../async/steps.ts'
import { everyOrigin } from '../../config/formats/origin.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import type { Route } from './route.ts'

type CorsConfig = NonNullable<RouteConfig['cors']>

/** Header fields of an answer, by name in lower case. */
export type CorsHeaders = Readonly<Record<string, string>>

/** What a browser asks before it sends a request that a plain page could not have sent. */
export interface Preflight {
  /** Of the request that it would send. */
  readonly method: string
  /** As received; `undefined` where none is named. */
  readonly headers: string | undefined
  readonly origin: string
}

export interface CorsPolicy {
  /** For every answer but a preflight's. @param origin of the request, where it has one */
  answer(origin: string | undefined): CorsHeaders
  /** @param methods those that are served at the path; `undefined` stands for every method */
  preflight(preflight: Preflight, methods: Iterable<string> | undefined): CorsHeaders
}

/** The policy of a route, its own or else the server's; without a route the server's. */
export type CorsPolicies = (route: Route | undefined) => CorsPolicy | undefined

/** @returns `undefined` where no CORS is configured: requests are not even asked for their origin then */
export function* corsSteps(
  server: CorsConfig | undefined,
  routes: readonly Route[],
): Steps<CorsPolicies | undefined> {
  const ofServer = server && createCorsPolicy(server)
  const ofRoutes = new Map<Route | undefined, CorsPolicy>()
  yield* mapSteps(routes, route => {
    if (route.cors !== undefined) ofRoutes.set(route, createCorsPolicy(route.cors))
  })
  if (ofServer === undefined && ofRoutes.size === 0) return undefined
  return route => ofRoutes.get(route) ?? ofServer
}

/** The preflight that a request is, or nothing: `OPTIONS` without the two fields is a request as any other. */
export function readPreflight({ method, headers }: IncomingMessage): Preflight | undefined {
  if (method !== 'OPTIONS') return undefined
  const asked = headers['access-control-request-method']
  if (!headers.origin || !asked) return undefined
  return { method: asked, headers: headers['access-control-request-headers'], origin: headers.origin }
}

/** What only this gateway says of an answer: an upstream's own word would make two, and browsers then take neither. */
export const replacedHeaders: ReadonlySet<string> = new Set(
  ['origin', 'credentials', 'methods', 'headers', 'private-network']
    .map(subject => `access-control-allow-${subject}`)
    .concat('access-control-expose-headers', 'access-control-max-age'),
)

const exposedHeaders = ['X-Peage-Error', 'X-Request-Id', 'Retry-After', 'RateLimit', 'RateLimit-Policy']

/** Whoever is not let in is told nothing but that the answer depends on the origin, for caches. */
const onlyVary: CorsHeaders = { vary: 'Origin' }

function createCorsPolicy(config: CorsConfig): CorsPolicy {
  const isOpen = config.origins.includes(everyOrigin)
  const origins = new Set(config.origins)
  const names = [...exposedHeaders, ...config.expose_headers].join(', ')
  const answerTo = (origin: string): CorsHeaders => ({
    ...allowance(origin, config),
    'access-control-expose-headers': names,
  })
  // Made once: they are the same for every request.
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

/** Spelt out: `*` would be the name of a method to a request with credentials. */
function everyMethod(asked: string): Iterable<string> {
  const usual = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  return new Set(METHODS.includes(asked) ? [...usual, asked] : usual)
}

/** Names of fields (RFC 9110 §5.6.1): what is said back is nothing else. */
const isList = /^[!#$%&'*+.^_`|~0-9A-Za-z, \t-]+$/
