// Generates configurations that `peage check` accepts. Their routes overlap, and use most of the keys of a route.
import fc from 'fast-check'
import { stringify } from 'yaml'
import { loadConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/sections/schema.ts'

/** A configuration, divided into the arguments of `startGateway`. */
export interface Generated {
  /** The sections `upstreams` and `routes`. */
  readonly yaml: string
  /** The YAML text of keys for the sections `server` and `limits`. */
  readonly server: string
  readonly limits: string
  /** The loaded configuration. */
  readonly config: Config
}

/** @param urls the URLs of the upstreams `north` and `south` */
export function configurations(urls: readonly [string, string]): fc.Arbitrary<Generated> {
  return fc
    .record({
      routes: fc.array(route, { minLength: 3, maxLength: 14 }),
      server: fc.constantFrom('', '', corsOfServer, ', trusted_proxies: [127.0.0.1, 192.0.2.0/24]'),
      limits: fc.constantFrom('free_daily: 1', 'free_daily: 1', 'free_daily: 3'),
    })
    .map(({ routes, ...rest }) => accepted(routes, urls, rest))
    .filter(({ config }) => config.routes.length > 1)
}

const corsOfServer = ', cors: { origins: [https://app.example.com] }'
const some = (keys: Record<string, unknown>) => fc.constantFrom({}, {}, {}, keys)
const often = (keys: Record<string, unknown>) => fc.constantFrom({}, keys)

const paths = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .record({
        segments: fc.array(fc.constantFrom('a', 'a', 'b', 'c', ':p', 'Caf%C3%A9', 'x.y'), { maxLength: 3 }),
        isWild: fc.boolean(),
      })
      .map(({ segments, isWild }) => {
        const named = segments.map((segment, index) => (segment === ':p' ? `:p${index}` : segment))
        return `/${[...named, ...(isWild ? ['*'] : [])].join('/')}`
      }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('/api/v1/subscription/upgrade', '/api/v1/*', '/api/*', '/api/v1/user/:x'),
  },
)

const fields = some({
  headers: {
    request: { set: { 'X-Set': 'by the route', 'X-Kept': 'replaced' }, remove: ['x-debug', 'Cookie'] },
    response: { set: { 'X-Answer': 'by the route' }, remove: ['X-Powered-By', 'x-up'] },
  },
})

const route = fc
  .tuple(
    fc.record({ path: paths, upstream: fc.constantFrom('north', 'south') }),
    fc.constantFrom(
      {},
      {},
      { methods: ['GET'] },
      { methods: ['POST', 'PUT'] },
      { methods: ['GET', 'DELETE'] },
    ),
    fc.constantFrom(
      {},
      {},
      {},
      { hosts: ['api.example.com'] },
      { hosts: ['admin.example.com', 'localhost'] },
      { hosts: ['*.example.com'] },
      { hosts: ['*.admin.example.com', 'api.example.com'] },
    ),
    fc.constantFrom({}, {}, { auth: 'none' }, { auth: 'none' }, { auth: 'optional' }, { auth: 'optional' }),
    fc.constantFrom({}, {}, { plans: ['pro'] }, { plans: ['premium', 'pro'] }, { plans: ['free'] }),
    often({ free_daily: true }),
    fc.constantFrom({}, {}, {}, { scope: 'a' }, { scope: 'b' }, { bearer_only: true }),
    fields,
    some({ forward_credentials: true }),
    some({ forward_email: true, identity_assertion: true }),
    fc.oneof(
      fc.constant({}),
      fc
        .subarray(['encoded_slash', 'semicolon', 'trailing_dot', 'double_encoding', 'double_slash'])
        .map(allow_in_path => ({ allow_in_path })),
    ),
    fc.constantFrom({}, {}, { rate_limit: '2/1m' }, { rate_limit: '100/1h' }, { rate_limit: 0 }),
    some({ max_body: '1KiB' }),
    fc.constantFrom({}, {}, {}, { cors: { origins: ['*'], expose_headers: ['X-Up'] } }, { websocket: true }),
    fc.constantFrom('', '', 'strip', 'rewrite', 'rewrite'),
  )
  .map(([base, ...parts]) => {
    const rewriting = parts.pop() as string
    const keys = Object.assign({}, base, ...parts) as Record<string, unknown>
    if (keys.auth === 'none') {
      for (const key of [
        'plans',
        'scope',
        'bearer_only',
        'free_daily',
        'forward_email',
        'identity_assertion',
      ])
        delete keys[key]
    }
    return { ...keys, ...rewritten(base.path, rewriting) }
  })

function rewritten(path: string, how: string): Record<string, string> {
  const segments = path.slice(1).split('/')
  const literal = segments.findIndex(segment => segment === '*' || segment.startsWith(':'))
  if (how === 'strip' && literal !== 0 && segments[0] !== '') return { strip_prefix: `/${segments[0]}` }
  if (how !== 'rewrite') return {}
  const params = segments.filter(segment => segment.startsWith(':'))
  return { rewrite: `/${['new', ...params.reverse(), ...(path.endsWith('/*') ? ['*'] : [])].join('/')}` }
}

/** Removes the routes that `check` refuses, until `check` accepts the configuration. */
function accepted(
  routes: readonly object[],
  [north, south]: readonly [string, string],
  { server, limits }: { server: string; limits: string },
): Generated {
  const upstreams = { north: { targets: [north] }, south: { targets: [south], retries: 0 } }
  const yaml = stringify({ upstreams, routes })
  const text = `server: { listen: '127.0.0.1:0'${server} }\nlimits: { ${limits} }\n${yaml}`
  const loaded = loadConfig({ file: 'gateway.yaml', env: {}, readFile: () => text })
  if ('config' in loaded) return { yaml, server, limits, config: loaded.config }
  const refused = new Set(loaded.problems.map(({ path }) => Number(/^routes\[(\d+)\]/.exec(path)?.[1])))
  if (refused.has(Number.NaN)) throw new Error(`${JSON.stringify(loaded.problems)}\n${text}`)
  const remaining = routes.filter((_, index) => !refused.has(index))
  return accepted(remaining, [north, south], { server, limits })
}
