// Tests that the files in deploy/forward-auth prevent a client from sending a forged identity, or a request that the
// gateway has not checked.
import { describe, expect, it } from 'vitest'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { blocksOf } from '../docs/check/blocks.ts'
import { schemaKeys } from '../docs/schema-keys.ts'
import { identityNames } from '../security/identity-names.ts'
import { configOf, type Manifest, read, yamlOf } from './read.ts'

const folder = 'deploy/forward-auth'
const path = schemaKeys().find(key => key.path === 'server.forward_auth.path')?.byDefault ?? ''
const identity = [...identityNames]
/** Headers with credentials, and headers that override the path or the method that the gateway has checked. */
const dangerous = [
  ...['authorization', 'x-api-key', 'x-forwarded-uri', 'x-forwarded-method'],
  ...['x-http-method-override', 'x-http-method', 'x-method-override', 'x-original-url', 'x-rewrite-url'],
]
const ownPaths = [
  ...['/api/v1/auth/login', '/api/v1/user/api-token', '/api/v1/user/webhook', '/api/v1/user/webhook/test'],
  ...['/api/v1/subscription/upgrade', '/.well-known/jwks.json'],
]
const lower = (names: readonly string[]) => names.map(name => name.toLowerCase()).sort()
/** Returns the first group of every match, in lower case. */
const all = (text: string, pattern: RegExp) => lower([...text.matchAll(pattern)].map(([, name = '']) => name))

describe('deploy/forward-auth/gateway.yaml', () => {
  it('passes `peage check`, and trusts the same proxies that are allowed to use forward auth', () => {
    const { server, routes } = configOf(`${folder}/gateway.yaml`, {})
    expect(server.forward_auth).toEqual({ from: ['127.0.0.1'], path })
    expect(server.trusted_proxies).toEqual(server.forward_auth?.from)
    expect(routes.map(({ upstream }) => upstream)).toEqual([undefined, undefined, undefined])
  })

  it('uses the path that is the default in the JSON Schema', () => {
    expect(JSON.stringify(jsonSchema())).toContain(path)
  })
})

describe('deploy/forward-auth/nginx.conf', () => {
  const [, service = '', question = '', refused = '', own = ''] = read(`${folder}/nginx.conf`).split(
    /^ {2}location /m,
  )

  it('removes identity headers from the question to the gateway, and sets them in the request to the service', () => {
    expect(all(question, /proxy_set_header (\S+) +"";/g)).toEqual(expect.arrayContaining(lower(identity)))
    expect(all(service, /proxy_set_header (\S+) +\$peage_(?!connection)/g)).toEqual(lower(identity))
    const variables = all(service, /auth_request_set \$\w+ +\$upstream_http_(\w+);/g)
    expect(variables.map(name => name.replaceAll('_', '-'))).toEqual(expect.arrayContaining(lower(identity)))
  })

  it('removes credentials, and headers that override the path or method, from the request to the service', () => {
    expect(all(service, /proxy_set_header (\S+) +"";/g)).toEqual(lower(dangerous))
  })

  it('asks the gateway about the original request, in an internal location and without the query of the client', () => {
    expect(question).toMatch(/^= \/\.peage\/authorize \{\s+internal;/)
    expect(question).toContain(`proxy_pass http://peage${path}?as=nginx;`)
    for (const field of [
      'Method $request_method',
      'Uri    $request_uri',
      'Host   $host',
      'For    $remote_addr',
    ])
      expect(question).toMatch(new RegExp(`X-Forwarded-${field.replace('$', '\\$').replace(/ +/, ' +')};`))
  })

  it('sends the same host to the gateway and to the service, and does not change the path of the client', () => {
    expect(service).toMatch(/proxy_set_header Host +\$host;/)
    expect(service).toMatch(/proxy_pass http:\/\/service;/)
    expect(own).toMatch(/proxy_pass http:\/\/peage;/)
  })

  it('responds with the real status, the error code and Retry-After if the gateway refuses a request', () => {
    const statuses = all(refused, /if \(\$peage_status = (\d+)\) \{ return \1 /g)
    expect(statuses).toEqual(['400', '401', '403', '404', '405', '429', '503'])
    expect(all(refused, /add_header (\S+)/g)).toEqual(
      expect.arrayContaining(['retry-after', 'x-peage-error', 'allow', 'cache-control']),
    )
  })

  it('forwards a client’s request to the gateway exactly if the gateway itself serves its path', () => {
    const [, pattern = ''] = /^~\* (\S+) \{/.exec(own) ?? []
    const matches = new RegExp(pattern, 'i')
    for (const target of ownPaths) expect([target, matches.test(target)]).toEqual([target, true])
    for (const target of ['/', path, '/api/v1/user', '/api/v1/user/api-tokens', '/x/api/v1/auth/login'])
      expect([target, matches.test(target)]).toEqual([target, false])
  })
})

describe('deploy/forward-auth/Caddyfile', () => {
  const text = read(`${folder}/Caddyfile`)
  const [, route = ''] = text.split(/^\t\troute \{$/m)

  it('removes identity headers, then asks the gateway, and then sets the identity headers of its response', () => {
    expect(all(route, /request_header -(\S+)/g)).toEqual(lower(identity))
    const set = /header_up (X-User-\S+|X-Peage-\S+) \{http\.reverse_proxy\.header\.\1\}/g
    expect(all(route, set)).toEqual(lower(identity))
    const order = ['request_header', 'forward_auth', 'reverse_proxy 127.0.0.1:9000'].map(word =>
      route.indexOf(word),
    )
    expect(order).toEqual(order.toSorted((a, b) => a - b))
  })

  it('removes credentials, and headers that override the path or method, from the request to the service', () => {
    expect(all(route, /header_up -(\S+)/g)).toEqual(lower(dangerous))
  })

  it('asks the gateway without the query of the client', () => {
    expect(text).toMatch(new RegExp(`uri ${path.replace('.', '\\.')}\\?$`, 'm'))
  })

  it('forwards a client’s request to the gateway exactly if the gateway itself serves its path', () => {
    const [, list = ''] = /^\t@peage path (.*)$/m.exec(text) ?? []
    const matches = (target: string) =>
      list
        .split(' ')
        .some(one => one === target || (one.endsWith('/*') && target.startsWith(one.slice(0, -1))))
    for (const target of ownPaths) expect([target, matches(target)]).toEqual([target, true])
    for (const target of ['/', path, '/api/v1/user/api-tokens'])
      expect([target, matches(target)]).toEqual([target, false])
  })
})

describe('deploy/forward-auth/traefik', () => {
  const { http } = yamlOf(`${folder}/traefik/dynamic.yaml`)
  const emptied = (middleware: string) => {
    const fields: Record<string, string> = http.middlewares[middleware].headers.customRequestHeaders
    expect(new Set(Object.values(fields))).toEqual(new Set(['']))
    return lower(Object.keys(fields))
  }

  it('replaces the identity headers, and then removes credentials and headers that override the path or method', () => {
    expect(http.routers.service.middlewares).toEqual([
      'without-client-identity',
      'peage',
      'without-credentials',
    ])
    expect(emptied('without-client-identity')).toEqual(lower(identity))
    expect(emptied('without-credentials')).toEqual(lower(dangerous))
    expect(lower(http.middlewares.peage.forwardAuth.authResponseHeaders)).toEqual(lower(identity))
  })

  it('asks the gateway at the path for forward auth, and does not trust X-Forwarded headers of clients', () => {
    expect(http.middlewares.peage.forwardAuth).toMatchObject({
      address: `http://127.0.0.1:8080${path}`,
      trustForwardHeader: false,
    })
    expect(http.middlewares.peage.forwardAuth.authRequestHeaders).toBeUndefined()
  })

  it('does not change the path of the client', () => {
    const { entryPoints } = yamlOf(`${folder}/traefik/traefik.yaml`)
    expect(entryPoints.web.http.sanitizePath).toBe(false)
  })

  it('asks the gateway about every request, except for the paths that the gateway itself serves', () => {
    const { peage, service } = http.routers
    expect([peage.service, peage.middlewares, service.service]).toEqual(['peage', undefined, 'service'])
    expect(peage.priority).toBeGreaterThan(service.priority)
    const rules = [...peage.rule.matchAll(/(Path|PathPrefix)\(`([^`]+)`\)/g)]
    const matches = (target: string) =>
      rules.some(([, kind, one]) => (kind === 'Path' ? target === one : target.startsWith(one)))
    for (const target of ownPaths) expect([target, matches(target)]).toEqual([target, true])
    for (const target of ['/', path, '/api/v1/user/api-tokens'])
      expect([target, matches(target)]).toEqual([target, false])
  })
})

describe('deploy/forward-auth/envoy.yaml', () => {
  const { listeners, clusters } = yamlOf(`${folder}/envoy.yaml`).static_resources
  const manager = listeners[0].filter_chains[0].filters[0].typed_config
  const [extAuthz, router] = manager.http_filters
  const routes: Manifest[] = manager.route_config.virtual_hosts[0].routes

  it('removes the identity headers of clients before all filters, and sets the identity headers of the gateway', () => {
    const { mutations } = manager.early_header_mutation_extensions[0].typed_config
    expect(lower(mutations.map(({ remove }: { remove: string }) => remove))).toEqual(lower(identity))
    const { allowed_upstream_headers } = extAuthz.typed_config.http_service.authorization_response
    expect(lower(allowed_upstream_headers.patterns.map(({ exact }: { exact: string }) => exact))).toEqual(
      lower(identity),
    )
  })

  it('asks the gateway at the path for forward auth, with the headers that the gateway needs', () => {
    const { allowed_headers, http_service } = extAuthz.typed_config
    const exact = allowed_headers.patterns.flatMap((pattern: { exact?: string }) => pattern.exact ?? [])
    expect(exact).toEqual(expect.arrayContaining(['authorization', 'x-api-key', 'x-forwarded-for', 'origin']))
    expect(http_service).toMatchObject({ path_prefix: path, server_uri: { cluster: 'peage' } })
  })

  it('forwards no request while the gateway is down', () => {
    expect(extAuthz.typed_config).toMatchObject({
      failure_mode_allow: false,
      status_on_error: { code: 'ServiceUnavailable' },
    })
    expect([extAuthz.name, router.name]).toEqual([
      'envoy.filters.http.ext_authz',
      'envoy.filters.http.router',
    ])
  })

  it('does not change the path of the client, and takes the address of the client from the connection', () => {
    expect(manager).toMatchObject({
      normalize_path: false,
      merge_slashes: false,
      path_with_escaped_slashes_action: 'KEEP_UNCHANGED',
      use_remote_address: true,
    })
  })

  it('removes credentials, and headers that override the path or method, from the request to the service', () => {
    const { route, request_headers_to_remove, typed_per_filter_config } = routes.at(-1)
    expect([route.cluster, typed_per_filter_config]).toEqual(['service', undefined])
    expect(lower(request_headers_to_remove)).toEqual(lower([...dangerous, 'x-forwarded-host']))
  })

  it('asks the gateway about every request, except for the paths that the gateway itself serves', () => {
    const own = routes.slice(0, -1)
    expect(own.map(({ route }) => route.cluster)).toEqual(own.map(() => 'peage'))
    expect(own.every(route => route.typed_per_filter_config[extAuthz.name].disabled)).toBe(true)
    const matches = (target: string) =>
      own.some(
        ({ match }) =>
          match.path === target || (match.prefix !== undefined && target.startsWith(match.prefix)),
      )
    for (const target of ownPaths) expect([target, matches(target)]).toEqual([target, true])
    for (const target of ['/', path, '/api/v1/user/api-tokens'])
      expect([target, matches(target)]).toEqual([target, false])
    expect(clusters.map(({ name }: { name: string }) => name)).toEqual(['peage', 'service'])
  })
})

describe('docs/forward-auth.md', () => {
  const parts = blocksOf('docs/forward-auth.md').flatMap(({ text, norun }) => {
    const [, file] = /^a part of (\S+)$/.exec(norun ?? '') ?? []
    return file === undefined ? [] : [{ text, file }]
  })

  it('shows a part of the configuration file of each proxy', () => {
    expect(new Set(parts.map(({ file }) => file))).toEqual(
      new Set(
        ['nginx.conf', 'Caddyfile', 'traefik/dynamic.yaml', 'envoy.yaml'].map(name => `${folder}/${name}`),
      ),
    )
  })

  it.each(parts)('shows only lines that are in $file', ({ text, file }) => {
    const lines = new Set(read(file).replaceAll('\t', '  ').split('\n'))
    expect(text.split('\n').filter(line => !lines.has(line))).toEqual([])
  })
})
