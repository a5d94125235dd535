// Decides how the gateway handles a request: with a local endpoint, a route and its guards, a preflight response, or a
// refusal. Also decides about the questions of forward auth (docs/forward-auth.md).
import type { IncomingMessage } from 'node:http'
import type { FindLocalPath, LocalPath } from '../../endpoints/endpoint-table.ts'
import type { LocalEndpoint } from '../../endpoints/local-endpoint.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Upstream } from '../../upstream/targets/upstreams.ts'
import type { GuardChain, RouteGuards } from '../guards/chain.ts'
import { malformed, type RequestHead } from '../parsing/request-head.ts'
import { normalizeHost, type RequestTarget } from '../parsing/request-target.ts'
import { asksForWebSocket, isHandshake, parseOfferedProtocols } from '../parsing/websocket-handshake.ts'
import type { AllowAmbiguous } from './allow-ambiguous-path.ts'
import { type CorsHeaders, type CorsPolicies, type Preflight, readPreflight } from './cors.ts'
import type { Route } from './route.ts'
import { allowOf, type RouteTable } from './route-table.ts'

/** A route with its guards and its upstream, which are resolved when the configuration is loaded. */
export interface GuardedRoute extends Route, RouteGuards {
  /** Undefined if the route is only for forward auth. */
  readonly upstream: Upstream | undefined
}

/** A route whose requests the gateway forwards. */
export interface ForwardingRoute extends GuardedRoute {
  readonly upstreamName: string
  readonly guards: GuardChain
  readonly upstream: Upstream
}

export type RoutingDecision = ToLocalEndpoint | ToRoute | ToQuestion | ToPreflight | Refused

interface Common {
  /** The CORS headers of the response, even of a refusal or an upstream response; undefined without CORS. */
  readonly cors: CorsHeaders | undefined
}

interface ToLocalEndpoint extends Common {
  readonly kind: 'local'
  readonly path: string
  readonly endpoint: LocalEndpoint
}

export interface ToRoute extends Common {
  readonly kind: 'route'
  readonly route: ForwardingRoute
  readonly target: RequestTarget
  readonly isWebSocket: boolean
}

/** The decision for a question of forward auth, in which a proxy asks about a request to `route`. */
export interface ToQuestion extends Common {
  readonly kind: 'question'
  readonly route: GuardedRoute
}

interface ToPreflight extends Common {
  readonly kind: 'preflight'
  /** The name of the route or the path of the local endpoint; undefined if nothing is served at the path. */
  readonly name: string | undefined
  readonly route: GuardedRoute | undefined
}

interface Refused extends Common {
  readonly kind: 'refused'
  readonly refusal: Refusal
  readonly route: GuardedRoute | undefined
  /** Whether the request has `Upgrade: websocket`, on a route that allows WebSockets. */
  readonly isWebSocket: boolean
}

interface Options {
  findLocalPath: FindLocalPath
  routes: RouteTable<GuardedRoute>
  allowAmbiguous: AllowAmbiguous
  policies: CorsPolicies | undefined
}

/** The parts of a request that the decision reads in addition to its `RequestHead`. */
export type DecidedRequest = Pick<IncomingMessage, 'method' | 'headers' | 'httpVersion'>

/**
 * Decides where a request goes. On a WebSocket route, also copies the bearer token from the subprotocols into `head`.
 * @param isQuestion whether a proxy asks about the request; the proxy, not the gateway, then forwards the request
 */
export type Decide = (request: DecidedRequest, head: RequestHead, isQuestion?: boolean) => RoutingDecision

export function createDecide({ findLocalPath, routes, allowAmbiguous, policies }: Options): Decide {
  function corsOf(request: DecidedRequest, route: GuardedRoute | undefined): CorsHeaders | undefined {
    return policies?.(route)?.answer(request.headers.origin)
  }

  function refuse(
    request: DecidedRequest,
    refusal: Refusal,
    route?: GuardedRoute | undefined,
    isWebSocket = false,
  ): Refused {
    return { kind: 'refused', refusal, route, isWebSocket, cors: corsOf(request, route) }
  }

  function toLocal(
    request: DecidedRequest,
    head: RequestHead,
    target: RequestTarget,
    found: LocalPath | 'unknown',
    preflight: Preflight | undefined,
  ): RoutingDecision {
    if (target.ambiguities !== 0) return refuse(request, new Refusal('path_invalid'))
    if (found === 'unknown') return toPreflight(preflight) ?? refuse(request, new Refusal('route_unknown'))
    const { path, endpoints, switchedOff } = found
    const { method = '' } = request
    if (switchedOff.includes(method)) return refuse(request, new Refusal('route_unknown'))
    const answered = toPreflight(preflight, path, endpoints.keys())
    if (answered !== undefined) return answered
    const endpoint = endpoints.get(method)
    if (endpoint === undefined) return refuse(request, notAllowed([...endpoints.keys()].join(', ')))
    if (head.hasAmbiguousCredentials) return refuse(request, new Refusal('credentials_ambiguous'))
    return { kind: 'local', path, endpoint, cors: corsOf(request, undefined) }
  }

  /**
   * Returns the response to a preflight, even if nothing is served at the path. If the preflight were refused, the web
   * page could not see the 404 of its request.
   * @param methods the methods served at the path; undefined for every method
   * @returns undefined if the request is not a preflight, or if CORS is not configured for the path
   */
  function toPreflight(
    preflight: Preflight | undefined,
    name?: string,
    methods?: Iterable<string>,
    route?: GuardedRoute,
  ): ToPreflight | undefined {
    const cors = preflight && policies?.(route)?.preflight(preflight, methods)
    return cors && { kind: 'preflight', name, route, cors }
  }

  function toRoute(
    request: DecidedRequest,
    head: RequestHead,
    target: RequestTarget,
    host: string,
    route: ForwardingRoute,
  ): RoutingDecision {
    // If the target's authority and `Host` differ, one may be forged. So only a route with `hosts` serves the request.
    const isContradicted = target.authority !== undefined && normalizeHost(head.host) !== host
    if (isContradicted && route.hosts.length === 0) return refuse(request, malformed(), route)
    const isWebSocket = route.websocket && asksForWebSocket(request)
    if (isWebSocket) {
      if (!isHandshake(request)) return refuse(request, malformed(), route, true)
      takeBearer(request, head)
    }
    // With two credentials, the upstream could use a different one than the gateway. So even a route without guards
    // refuses the request.
    if (head.hasAmbiguousCredentials) {
      return refuse(request, new Refusal('credentials_ambiguous'), route, isWebSocket)
    }
    return { kind: 'route', route, target, isWebSocket, cors: corsOf(request, route) }
  }

  function toQuestion(request: DecidedRequest, head: RequestHead, route: GuardedRoute): RoutingDecision {
    if (head.hasAmbiguousCredentials) return refuse(request, new Refusal('credentials_ambiguous'), route)
    return { kind: 'question', route, cors: corsOf(request, route) }
  }

  /** Returns whether the operator declared a route at exactly the path of a replaceable endpoint. */
  function isReplaced(found: LocalPath | 'unknown', host: string, { segments }: RequestTarget): boolean {
    if (found === 'unknown' || !found.isReplaceable) return false
    return routes.match('GET', host, segments).route?.isLiteral === true
  }

  return (request, head, isQuestion = false) => {
    const { target } = head
    if (target instanceof Refusal) return refuse(request, target)
    const { method = '' } = request
    const host = normalizeHost(target.authority ?? head.host)
    const preflight = policies && readPreflight(request)
    const found = findLocalPath(target.segments)
    if (isQuestion && target.unmergedPath !== undefined) {
      // The gateway checks the path with merged slashes, but the proxy forwards it with duplicate slashes.
      const { route } = routes.match(method, host, target.segments)
      if (!route?.allow_in_path.includes('double_slash')) {
        return refuse(request, new Refusal('path_invalid'), route)
      }
    }
    if (found !== undefined && !isReplaced(found, host, target)) {
      // The proxy must send requests for these paths to the gateway. A question about them is refused.
      return isQuestion
        ? toLocal(request, head, target, 'unknown', undefined)
        : toLocal(request, head, target, found, preflight)
    }

    if (target.ambiguities !== 0) {
      const { route } = routes.match(method, host, target.segments)
      if (route === undefined || !allowAmbiguous(route, method, host, target)) {
        return refuse(request, new Refusal('path_invalid'), route)
      }
    }
    if (preflight !== undefined) {
      const { route } = routes.match(preflight.method, host, target.segments)
      const served = isQuestion || isForwarding(route) ? route : undefined
      const answered = toPreflight(preflight, served?.name, served?.allowedMethods, served)
      if (answered !== undefined) return answered
    }
    const match = routes.match(method, host, target.segments)
    if (match.kind === 'none') return refuse(request, new Refusal('route_unknown'))
    if (match.kind === 'method') {
      const served = isQuestion ? match.routes : match.routes.filter(isForwarding)
      if (served.length === 0) return refuse(request, new Refusal('route_unknown'))
      return refuse(request, notAllowed(allowOf(served)), served[0])
    }
    if (isQuestion) return toQuestion(request, head, match.route)
    // A route without an upstream exists only for forward auth. A less specific route must not forward the request.
    if (!isForwarding(match.route)) return refuse(request, new Refusal('route_unknown'))
    return toRoute(request, head, target, host, match.route)
  }
}

function isForwarding(route: GuardedRoute | undefined): route is ForwardingRoute {
  return route?.upstream !== undefined
}

/**
 * Reads the token from the subprotocol `peage.bearer.<token>`, because browsers cannot set the header `Authorization`
 * for a WebSocket.
 */
function takeBearer(request: DecidedRequest, head: RequestHead): void {
  const { bearers } = parseOfferedProtocols(request.headers['sec-websocket-protocol'])
  if (bearers.length === 0) return
  if (bearers.length > 1 || head.authorization !== undefined) head.hasAmbiguousCredentials = true
  else head.authorization = `Bearer ${bearers[0]}`
}

function notAllowed(allow: string): Refusal {
  return new Refusal('method_not_allowed', { headers: { allow } })
}
