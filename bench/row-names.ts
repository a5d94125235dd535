// The names of the rows of the benchmark.

export const direct = 'direct'
/** The base row. The charts and the result tables show the cost of each row relative to this row. */
export const base = '@fastify/http-proxy'
/** The row that shows the minimum cost of a proxy in Node. */
export const floor = 'node:http + dispatch'

/** The name of the build of this checkout. */
export const ours = 'gateway'

/** The kinds of requests to a gateway. A row name consists of a build and a kind, for example `gateway, bearer`. */
export const kinds = {
  public: 'public',
  bearer: 'bearer',
  apiKey: 'API key',
  keyWithoutScopes: 'key without scopes',
  keyWithScopes: 'key with scopes',
  plan: 'plan',
  admitted: 'free-daily admitted',
  oneClient: 'free-daily admitted, one client',
  refused: 'free-daily refused',
  quotaCounted: 'quota counted',
  quotaExhausted: 'quota exhausted',
  inSession: 'bearer, logout_ends_access',
  forwardAuth: 'decision by forward auth',
  manyAddresses: 'bearer, 32 addresses',
  twoWorkers: 'bearer, two workers',
} as const

export function rowName(build: string, kind: string): string {
  return `${build}, ${kind}`
}

/** The number of seconds for which the auth service of `nginxRemembering` and `caddyRemembering` caches a user. */
export const rememberSeconds = 60
const remembering = `auth service remembers ${rememberSeconds} s`

export const peers = {
  nginx: 'nginx + auth_request',
  nginxRemembering: `nginx + auth_request, ${remembering}`,
  nginxCache: 'nginx + auth_request, 15 s cache',
  caddy: 'Caddy forward_auth',
  caddyRemembering: `Caddy forward_auth, ${remembering}`,
  haproxy: 'HAProxy jwt_verify (no user look-up)',
  expressGateway: 'Express Gateway jwt (no user look-up)',
} as const
