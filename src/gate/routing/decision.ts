// Where a request goes: to an endpoint of ours, through the guards of a route, or nowhere (CONTRACT §2, §4).
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../refusals/refusal.ts'
import type { GuardedRoute } from '../guarded-route.ts'
import { malformed, type RequestHead } from '../parsing/request-head.ts'
import { normalizeHost, type RequestTarget } from '../parsing/request-target.ts'
import { asksForWebSocket, isHandshake, parseOfferedProtocols } from '../parsing/websocket-handshake.ts'
import type { AllowAmbiguous } from './allow-ambiguous-path.ts'
import { type CorsHeaders, type CorsPolicies, readPreflight } from './cors.ts'
import type { RouteTable } from './route-table.ts'

export type RoutingDecision = ToLocalEndpoint | ToRoute | ToPreflight | Refused

interface Common {
  /** What every answer tells browsers, a refusal and an upstream's too; `undefined` where no CORS is configured. */
  readonly cors: CorsHeaders | undefined
}

interface ToLocalEndpoint extends Common {
  readonly kind: 'local'
  readonly path: string
}

export interface ToRoute extends Common {
  readonly kind: 'route'
  readonly route: GuardedRoute
  readonly target: RequestTarget
  readonly isWebSocket: boolean
}

/** A browser asks what it may send, and `cors` is the answer. */
interface ToPreflight extends Common {
  readonly kind: 'preflight'
  readonly name: string
}

interface Refused extends Common {
  readonly kind: 'refused'
  readonly refusal: Refusal
  /** The one at the path, where there is one. */
  readonly route: GuardedRoute | undefined
  /** It asked a route that has WebSockets for one. */
  readonly isWebSocket: boolean
}

export interface LocalEndpoint {
  readonly path: string
  readonly methods: readonly string[]
  /** It gives way to a route that is declared at the very path. */
  readonly isReplaceable?: boolean
}

/** The endpoint of ours at a path, `unknown` where the path is ours and nothing is there, or nothing of ours. */
export type FindLocalEndpoint = (segments: readonly string[]) => LocalEndpoint | 'unknown' | undefined

interface Options {
  findLocalEndpoint: FindLocalEndpoint
  routes: RouteTable<GuardedRoute>
  allowAmbiguous: AllowAmbiguous
  /** `undefined` where none is configured. */
  policies: CorsPolicies | undefined
}

/** Where the route has WebSockets it takes the bearer out of the sub-protocols; else it leaves the head as it is. */
export type Decide = (request: IncomingMessage, head: RequestHead) => RoutingDecision

export function createDecide({ findLocalEndpoint, routes, allowAmbiguous, policies }: Options): Decide {
  function corsOf(request: IncomingMessage, route: GuardedRoute | undefined): CorsHeaders | undefined {
    return policies?.(route)?.answer(request.headers.origin)
  }

  function refuse(
    request: IncomingMessage,
    refusal: Refusal,
    route?: GuardedRoute | undefined,
    isWebSocket = false,
  ): Refused {
    return { kind: 'refused', refusal, route, isWebSocket, cors: corsOf(request, route) }
  }

  function toLocal(
    request: IncomingMessage,
    head: RequestHead,
    target: RequestTarget,
    found: LocalEndpoint | 'unknown',
  ): RoutingDecision {
    if (target.ambiguities !== 0) return refuse(request, new Refusal('path_invalid'))
    if (found === 'unknown') return refuse(request, new Refusal('route_unknown'))
    const { path, methods } = found
    const preflight = policies && readPreflight(request)
    const answer = preflight && policies?.(undefined)?.preflight(preflight, methods)
    if (answer !== undefined) return { kind: 'preflight', name: path, cors: answer }
    if (!methods.includes(request.method ?? '')) return refuse(request, notAllowed(methods.join(', ')))
    if (head.hasAmbiguousCredentials) return refuse(request, new Refusal('credentials_ambiguous'))
    return { kind: 'local', path, cors: corsOf(request, undefined) }
  }

  function toRoute(
    request: IncomingMessage,
    head: RequestHead,
    target: RequestTarget,
    host: string,
    route: GuardedRoute,
  ): RoutingDecision {
    // An authority that disagrees with Host counts where a route names it; else one of the two is a lie.
    const isContradicted = target.authority !== undefined && normalizeHost(head.host) !== host
    if (isContradicted && route.hosts.length === 0) return refuse(request, malformed(), route)
    const isWebSocket = route.websocket && asksForWebSocket(request)
    if (isWebSocket) {
      if (!isHandshake(request)) return refuse(request, malformed(), route, true)
      takeBearer(request, head)
    }
    // Two readers may take two different headers; on every route, guarded or not (CONTRACT §4).
    if (head.hasAmbiguousCredentials) {
      return refuse(request, new Refusal('credentials_ambiguous'), route, isWebSocket)
    }
    return { kind: 'route', route, target, isWebSocket, cors: corsOf(request, route) }
  }

  /** Where ops declared a route at the very path of an endpoint that gives way to one (CONTRACT §5). */
  function isReplaced(found: LocalEndpoint | 'unknown', host: string, { segments }: RequestTarget): boolean {
    if (found === 'unknown' || !found.isReplaceable) return false
    return routes.match('GET', host, segments).route?.isLiteral === true
  }

  return (request, head) => {
    const { target } = head
    if (target instanceof Refusal) return refuse(request, target)
    const { method = '' } = request
    const host = normalizeHost(target.authority ?? head.host)
    const found = findLocalEndpoint(target.segments)
    if (found !== undefined && !isReplaced(found, host, target)) return toLocal(request, head, target, found)

    if (target.ambiguities !== 0) {
      const { route } = routes.match(method, host, target.segments)
      if (route === undefined || !allowAmbiguous(route, method, host, target)) {
        return refuse(request, new Refusal('path_invalid'), route)
      }
    }
    const preflight = policies && readPreflight(request)
    if (preflight !== undefined) {
      const { route } = routes.match(preflight.method, host, target.segments)
      const answer = route && policies?.(route)?.preflight(preflight, route.allowedMethods)
      if (route && answer) return { kind: 'preflight', name: route.name, cors: answer }
    }
    const match = routes.match(method, host, target.segments)
    if (match.kind === 'none') return refuse(request, new Refusal('route_unknown'))
    if (match.kind === 'method') return refuse(request, notAllowed(match.allow), match.route)
    return toRoute(request, head, target, host, match.route)
  }
}

/** Browsers can set no header on a WebSocket: `peage.bearer.<token>` stands for one (CONTRACT §4). */
function takeBearer(request: IncomingMessage, head: RequestHead): void {
  const { bearers } = parseOfferedProtocols(request.headers['sec-websocket-protocol'])
  if (bearers.length === 0) return
  if (bearers.length > 1 || head.authorization !== undefined) head.hasAmbiguousCredentials = true
  else head.authorization = `Bearer ${bearers[0]}`
}

function notAllowed(allow: string): Refusal {
  return new Refusal('method_not_allowed', { headers: { allow } })
}
