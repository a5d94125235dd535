// The names of the rows.

export const direct = 'direct'
/** The row that all ratios are relative to. */
export const base = '@fastify/http-proxy'
/** The minimum cost of a proxy in Node. */
export const floor = 'node:http + dispatch'

/** The build to measure. */
export const ours = 'gateway'

/** The kinds of requests. In row names, the build comes first, for example `gateway, bearer`. */
export const kinds = {
  public: 'public',
  bearer: 'bearer',
  apiKey: 'API key',
  plan: 'plan',
  admitted: 'free-daily admitted',
  oneClient: 'free-daily admitted, one client',
  refused: 'free-daily refused',
  inSession: 'bearer, logout_ends_access',
  manyAddresses: 'bearer, 32 addresses',
  twoWorkers: 'bearer, two workers',
} as const

export function rowName(build: string, kind: string): string {
  return `${build}, ${kind}`
}

/** The cache time of the auth service of two rows in seconds. */
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
