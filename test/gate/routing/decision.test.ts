// Tests the routing decision, which is made before any guard runs: a local endpoint, a route, a preflight response or a
// refusal.
import { describe, expect, it } from 'vitest'
import type { RouteConfig } from '../../../src/config/sections/schema.ts'
import type { FindLocalPath } from '../../../src/endpoints/endpoint-table.ts'
import type { LocalEndpoint } from '../../../src/endpoints/local-endpoint.ts'
import { parseRequestHead } from '../../../src/gate/parsing/request-head.ts'
import { createAllowAmbiguous } from '../../../src/gate/routing/allow-ambiguous-path.ts'
import { createCorsPolicies } from '../../../src/gate/routing/cors.ts'
import { createDecide, type GuardedRoute } from '../../../src/gate/routing/decision.ts'
import { createRouteTable } from '../../../src/gate/routing/route-table.ts'
import { createTrustedProxies } from '../../../src/http/client-address.ts'
import { aRequest } from '../a-request.ts'
import { routeWith } from '../a-route.ts'

const page = 'https://app.example.com'
const cors = { origins: [page], credentials: false, expose_headers: [], max_age: 600_000 }

const endpoint = {} as LocalEndpoint

/**
 * A stub with three local paths. /own/login accepts only POST. A route may replace /own/upgrade. For /own/account,
 * DELETE is switched off.
 */
const findLocalPath: FindLocalPath = segments => {
  if (segments[0] !== 'own') return undefined
  const path = `/${segments.join('/')}`
  const local = (methods: string[], isReplaceable = false, switchedOff: string[] = []) => {
    const endpoints = new Map(methods.map(method => [method, endpoint]))
    return { path, endpoints, isReplaceable, switchedOff }
  }
  if (path === '/own/login') return local(['POST'])
  if (path === '/own/upgrade') return local(['GET', 'HEAD'], true)
  if (path === '/own/account') return local(['GET', 'HEAD'], false, ['DELETE'])
  return 'unknown'
}

function stage(declared: Partial<RouteConfig>[], serverCors?: typeof cors) {
  // The test routes have no compiled guards. The decision does not need guards, because they run later.
  const compiled = declared.map(route => routeWith(route) as GuardedRoute)
  const routes = createRouteTable(compiled)
  const decide = createDecide({
    findLocalPath,
    routes,
    allowAmbiguous: createAllowAmbiguous({
      isOwn: segments => findLocalPath(segments) !== undefined,
      routes,
      isSameService: (one, other) => one === other,
    }),
    policies: createCorsPolicies(serverCors, compiled),
  })
  return (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    more: [string, string][] = [],
  ) => {
    const request = aRequest([['Host', 'gw.test'], ...Object.entries(headers), ...more], { method, path })
    const head = parseRequestHead(request, createTrustedProxies([]))
    return { decision: decide(request, head), head }
  }
}

type Ask = ReturnType<typeof stage>

function told(ask: Ask, ...asked: Parameters<Ask>): string {
  const { decision } = ask(...asked)
  if (decision.kind === 'local') return `own ${decision.path}`
  if (decision.kind === 'preflight') return `preflight of ${decision.name}`
  if (decision.kind === 'route') return `${decision.route.name}${decision.isWebSocket ? ', WebSocket' : ''}`
  if (decision.kind === 'question') return `question about ${decision.route.name}`
  const route = decision.route === undefined ? '' : ` on ${decision.route.name}`
  return `${decision.refusal.code}${route}${decision.isWebSocket ? ', WebSocket' : ''}`
}

function allowOf(ask: Ask, ...asked: Parameters<Ask>): string | undefined {
  const { decision } = ask(...asked)
  const fields = decision.kind === 'refused' ? decision.refusal.response('fr').fields : []
  return fields[fields.indexOf('allow') + 1]
}

describe('the gateway’s own paths', () => {
  const ask = stage([
    { name: 'wide', path: '/*' },
    { name: 'upgrade', path: '/own/upgrade' },
  ])

  it('take precedence over routes', () => {
    expect(told(ask, 'POST', '/own/login')).toBe('own /own/login')
    expect(told(ask, 'POST', '/OWN/Login/')).toBe('own /own/login')
    expect(told(ask, 'POST', '/owned')).toBe('wide')
  })

  it('refuse a request with another method, and list the allowed methods', () => {
    expect(told(ask, 'GET', '/own/login')).toBe('method_not_allowed')
    expect(allowOf(ask, 'GET', '/own/login')).toBe('POST')
    expect(allowOf(ask, 'POST', '/own/account')).toBe('GET, HEAD')
  })

  it('are refused with route_unknown if no route matches and the requested endpoint does not exist or is switched off', () => {
    expect(told(ask, 'GET', '/own/nothing')).toBe('route_unknown')
    expect(told(ask, 'DELETE', '/own/account')).toBe('route_unknown')
    expect(told(ask, 'GET', '/own/account')).toBe('own /own/account')
  })

  it('refuse a request with an ambiguous path, or with two credentials of the same kind', () => {
    expect(told(ask, 'POST', '/own/log%69n')).toBe('own /own/login')
    expect(told(ask, 'POST', '/own/a%2Flogin')).toBe('path_invalid')
    const twice: [string, string][] = [
      ['X-API-Key', 'a'],
      ['X-API-Key', 'a'],
    ]
    expect(told(ask, 'POST', '/own/login', {}, twice)).toBe('credentials_ambiguous')
  })

  it('can be replaced only if they are replaceable, and only by a route with exactly the same path', () => {
    expect(told(ask, 'GET', '/own/upgrade')).toBe('upgrade')
    expect(told(stage([{ path: '/*' }, { path: '/own/login' }]), 'POST', '/own/login')).toBe('own /own/login')
    expect(told(stage([{ path: '/own/*' }]), 'GET', '/own/upgrade')).toBe('own /own/upgrade')
    expect(told(stage([]), 'GET', '/own/upgrade')).toBe('own /own/upgrade')
  })
})

describe('a route', () => {
  const ask = stage([
    { name: 'read', path: '/things', methods: ['GET'] },
    { name: 'hosted', path: '/hosted', hosts: ['api.example.com'] },
    { name: 'slashes', path: '/slashes/*', allow_in_path: ['encoded_slash'] },
    { name: 'rest', path: '/rest/*' },
  ])

  it('does not match an unknown path, and refuses another method with a list of the allowed methods', () => {
    expect(told(ask, 'GET', '/nothing')).toBe('route_unknown')
    expect(told(ask, 'HEAD', '/things')).toBe('read')
    expect(told(ask, 'PUT', '/things')).toBe('method_not_allowed on read')
    expect(allowOf(ask, 'PUT', '/things')).toBe('GET, HEAD')
  })

  it('accepts an ambiguous path only if it allows the ambiguity', () => {
    expect(told(ask, 'GET', '/slashes/a%2Fb')).toBe('slashes')
    expect(told(ask, 'GET', '/slashes/a;b')).toBe('path_invalid on slashes')
    expect(told(ask, 'GET', '/rest/a%2Fb')).toBe('path_invalid on rest')
    expect(told(ask, 'GET', '/nothing/a%2Fb')).toBe('path_invalid')
  })

  it('is chosen by the host in the request target, and must list this host if the header Host is different', () => {
    expect(told(ask, 'GET', 'http://gw.test/things')).toBe('read')
    expect(told(ask, 'GET', 'http://GW.test.:80/things')).toBe('read')
    expect(told(ask, 'GET', 'http://other.test/things')).toBe('request_invalid on read')
    expect(told(ask, 'GET', 'http://api.example.com/hosted')).toBe('hosted')
    expect(told(ask, 'GET', '/hosted')).toBe('route_unknown')
  })

  it('refuses two credentials of the same kind, even if the route requires no credential', () => {
    const twice: [string, string][] = [
      ['Authorization', 'a'],
      ['Authorization', 'a'],
    ]
    expect(told(ask, 'GET', '/things', {}, twice)).toBe('credentials_ambiguous on read')
  })
})

describe('a WebSocket handshake', () => {
  const ask = stage([
    { name: 'socket', path: '/socket', websocket: true },
    { name: 'plain', path: '/plain' },
  ])
  const handshake = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  }

  it('is recognized only on a route with `websocket`, and is an ordinary request on other routes', () => {
    expect(told(ask, 'GET', '/socket', handshake)).toBe('socket, WebSocket')
    expect(told(ask, 'GET', '/socket')).toBe('socket')
    expect(told(ask, 'GET', '/plain', handshake)).toBe('plain')
  })

  it('is refused if it is invalid', () => {
    const broken = { ...handshake, 'sec-websocket-version': '8' }
    expect(told(ask, 'GET', '/socket', broken)).toBe('request_invalid on socket, WebSocket')
  })

  it('may contain one token in its sub-protocols, but only if the request contains no other token', () => {
    const offering = (protocols: string, headers = {}) =>
      ask('GET', '/socket', { ...handshake, 'sec-websocket-protocol': protocols, ...headers })
    expect(offering('chat, peage.bearer.abc').head.authorization).toBe('Bearer abc')
    expect(offering('chat').head.authorization).toBeUndefined()
    const two = { ...handshake, 'sec-websocket-protocol': 'peage.bearer.a, peage.bearer.b' }
    const both = { ...handshake, 'sec-websocket-protocol': 'peage.bearer.a', authorization: 'Bearer b' }
    for (const headers of [two, both]) {
      expect(told(ask, 'GET', '/socket', headers)).toBe('credentials_ambiguous on socket, WebSocket')
    }
    const token = { 'sec-websocket-protocol': 'peage.bearer.abc' }
    expect(ask('GET', '/plain', { ...handshake, ...token }).head.authorization).toBeUndefined()
    expect(ask('GET', '/socket', token).head.authorization).toBeUndefined()
  })
})

describe('CORS', () => {
  const routes = [
    { name: 'read', path: '/things', methods: ['GET'] },
    { name: 'own', path: '/cors', cors: { ...cors, origins: ['https://own.example'] } },
  ]
  const asking = (origin: string, method = 'GET') => ({ origin, 'access-control-request-method': method })

  it('answers a preflight for the route that allows the requested method, otherwise for any route with the path', () => {
    const ask = stage(routes, cors)
    expect(told(ask, 'OPTIONS', '/things', asking(page))).toBe('preflight of read')
    expect(ask('OPTIONS', '/things', asking(page, 'PUT')).decision).toMatchObject({
      kind: 'preflight',
      cors: { 'access-control-allow-methods': 'GET, HEAD', 'access-control-allow-origin': page },
    })
    expect(told(ask, 'OPTIONS', '/own/login', asking(page))).toBe('preflight of /own/login')
    expect(ask('OPTIONS', '/own/login', asking(page)).decision.cors).toMatchObject({
      'access-control-allow-methods': 'POST',
    })
    expect(told(ask, 'OPTIONS', '/things', { origin: page })).toBe('method_not_allowed on read')
  })

  it('answers a preflight for an unknown path, so that a page can read the 404 response', () => {
    const ask = stage(routes, cors)
    for (const path of ['/nothing', '/own/nothing']) {
      expect(ask('OPTIONS', path, asking(page, 'PURGE')).decision).toMatchObject({
        kind: 'preflight',
        name: undefined,
        cors: {
          'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, PURGE',
          'access-control-allow-origin': page,
        },
      })
      expect(told(ask, 'PURGE', path, { origin: page })).toBe('route_unknown')
      expect(told(ask, 'OPTIONS', path, { origin: page })).toBe('route_unknown')
      expect(told(stage(routes), 'OPTIONS', path, asking(page))).toBe('route_unknown')
    }
    expect(told(ask, 'OPTIONS', '/nothing%2F', asking(page))).toBe('path_invalid')
  })

  it('adds its headers to every response, including refusals', () => {
    const ask = stage(routes, cors)
    const origins = [
      ask('GET', '/things', { origin: page }),
      ask('PUT', '/things', { origin: page }),
      ask('GET', '/nothing', { origin: page }),
      ask('GET', '/%00', { origin: page }),
      ask('POST', '/own/login', { origin: page }),
      ask('GET', '/own/login', { origin: page }),
      ask('GET', '/cors', { origin: 'https://own.example' }),
    ].map(({ decision }) => decision.cors?.['access-control-allow-origin'])
    expect(origins).toEqual([...Array(6).fill(page), 'https://own.example'])
  })

  it('applies only to routes with a CORS policy of their own, if the server has none', () => {
    const ask = stage(routes)
    expect(told(ask, 'OPTIONS', '/cors', asking('https://own.example'))).toBe('preflight of own')
    expect(told(ask, 'OPTIONS', '/things', asking(page))).toBe('method_not_allowed on read')
    expect(told(ask, 'OPTIONS', '/own/login', asking(page))).toBe('method_not_allowed')
    expect(ask('GET', '/things', { origin: page }).decision.cors).toBeUndefined()
  })
})
