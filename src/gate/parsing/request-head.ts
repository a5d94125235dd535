// What is known of a request before any guard: who sent it, where it wants to go, what it presents.
import type { IncomingMessage } from 'node:http'
import { maxFieldBytes } from '../../http/http-server.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { AllowInPath } from '../routing/allow-ambiguous-path.ts'
import { type CorsFields, type CorsPolicies, readPreflight } from '../routing/cors.ts'
import type { Route } from '../routing/route.ts'
import type { RouteTable } from '../routing/route-table.ts'
import { isPrivate, plainAddress, type TrustedProxies } from './client-address.ts'
import { type Fields, isWellFormed, readFields } from './request-headers.ts'
import { safeId } from './request-ids.ts'
import { comparableHost, isHost, readTarget, type Target } from './request-target.ts'
import { asksForWebSocket, isHandshake, offeredProtocols } from './websocket-handshake.ts'

/** Where a request goes: to an endpoint of ours, through the guards of a route, or nowhere. */
export type Door =
  | { readonly kind: 'own'; readonly path: string }
  | { readonly kind: 'route'; readonly route: Route; readonly target: Target }
  /** To nobody: a browser asks what it may send, and `fields` is the answer. */
  | { readonly kind: 'preflight'; readonly name: string; readonly fields: CorsFields }
  /** `route` where one is at the path. */
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly route?: Route }

export interface Arrival {
  readonly requestId: string
  /** The client's address, as far as trusted proxies tell it. */
  readonly client: string
  /** Whether the peer is a trusted proxy. */
  readonly peerIsTrusted: boolean
  /** The authority that was asked for, as received; empty where an HTTP/1.0 client named none. */
  readonly host: string
  /** The values of the fields that were there once; `undefined` where absent. */
  readonly authorization: string | undefined
  readonly apiKey: string | undefined
  /** Declared length of the body; `undefined` where it is chunked or there is none. */
  readonly contentLength: number | undefined
  readonly hasBody: boolean
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** It asks for a WebSocket on a route that has them, well or badly; `authorization` may come from a sub-protocol. */
  readonly wantsWebSocket: boolean
  readonly door: Door
  /** What every answer tells browsers, a refusal and an upstream's too; `undefined` where no CORS is configured. */
  readonly cors: CorsFields | undefined
}

export interface Arrivals {
  read(request: IncomingMessage): Arrival
}

interface OwnPath {
  readonly path: string
  readonly methods: readonly string[]
  readonly isReplaceable?: boolean
}

/** The endpoint of ours at a path, `unknown` where the path is ours and nothing is there, or nothing of ours. */
export type FindOwn = (segments: readonly string[]) => OwnPath | 'unknown' | undefined

interface Parts {
  findOwn: FindOwn
  routes: RouteTable
  allowInPath: AllowInPath
  /** `undefined` where none is configured. */
  cors: CorsPolicies | undefined
  proxies: TrustedProxies
  /** Told of every private peer that forwards for somebody and is not trusted: all its clients share one limit. */
  onUntrustedForwarder(peer: string): void
  /** A fresh request id, for clients that sent none. */
  newRequestId(): string
}

export function createArrivals({
  findOwn,
  routes,
  allowInPath,
  cors,
  proxies,
  onUntrustedForwarder,
  newRequestId,
}: Parts): Arrivals {
  function findDoor(request: IncomingMessage, seen: Fields): Door {
    if (seen.bytes > maxFieldBytes) return refused(tooLarge())
    if (seen.malformed || !isWellFormed(request, seen)) return refused(malformed())
    const target = readTarget(request.url ?? '')
    if (target === undefined) return refused(new Refusal('path_invalid'))
    const { authority = seen.host ?? '' } = target
    // Host itself was looked at above.
    if (target.authority !== undefined && !isHost(target.authority)) return refused(malformed())

    const preflight = cors && readPreflight(request)
    const host = comparableHost(authority)
    const found = findOwn(target.segments)
    const ours = isReplaced(found, host, target) ? undefined : found
    if (ours !== undefined && target.needs !== 0) return refused(new Refusal('path_invalid'))
    if (ours === 'unknown') return refused(new Refusal('route_unknown'))
    if (ours !== undefined) {
      const fields = preflight && cors?.(undefined)?.preflight(preflight, ours.methods)
      if (fields !== undefined) return { kind: 'preflight', name: ours.path, fields }
      if (!ours.methods.includes(request.method ?? '')) return refused(notAllowed(ours.methods.join(', ')))
      if (seen.ambiguous) return refused(new Refusal('credentials_ambiguous'))
      return { kind: 'own', path: ours.path }
    }

    if (target.needs !== 0) {
      const method = request.method ?? ''
      const { route } = routes.match(method, host, target.segments)
      if (route === undefined || !allowInPath(route, method, host, target)) {
        return refused(new Refusal('path_invalid'), route)
      }
    }
    if (preflight !== undefined) {
      const { route } = routes.match(preflight.method, host, target.segments)
      const policy = route && cors?.(route)
      if (policy)
        return { kind: 'preflight', name: route.name, fields: policy.preflight(preflight, route.allowed) }
    }
    const match = routes.match(request.method ?? '', host, target.segments)
    if (match.kind === 'none') return refused(new Refusal('route_unknown'))
    if (match.kind === 'method') return refused(notAllowed(match.allow), match.route)
    // An authority that disagrees with Host counts where a route names it; else one of the two is a lie.
    if (
      target.authority !== undefined &&
      comparableHost(seen.host ?? '') !== host &&
      match.route.hosts.length === 0
    ) {
      return refused(malformed(), match.route)
    }
    if (match.route.websocket && asksForWebSocket(request)) {
      seen.wantsWebSocket = true
      if (!isHandshake(request)) return refused(malformed(), match.route)
      takeBearer(request, seen)
    }
    // Two readers may take two different fields; on every route, guarded or not (CONTRACT §4).
    if (seen.ambiguous) return refused(new Refusal('credentials_ambiguous'), match.route)
    return { kind: 'route', route: match.route, target }
  }

  /** Where ops declared a route at the very path of an endpoint that gives way to one (CONTRACT §5). */
  function isReplaced(found: OwnPath | 'unknown' | undefined, host: string, { segments }: Target): boolean {
    if (found === undefined || found === 'unknown' || !found.isReplaceable) return false
    return routes.match('GET', host, segments).route?.isLiteral === true
  }

  return {
    read(request) {
      const seen = readFields(request.rawHeaders)
      const peer = request.socket.remoteAddress ?? ''
      const peerIsTrusted = proxies.trusts(peer)
      if (!peerIsTrusted && seen.forwardedFor !== '' && isPrivate(peer))
        onUntrustedForwarder(plainAddress(peer))
      const door = findDoor(request, seen)
      return {
        requestId: safeId.test(seen.requestId ?? '') ? (seen.requestId as string) : newRequestId(),
        client: peerIsTrusted ? proxies.clientOf(peer, seen.forwardedFor) : plainAddress(peer),
        peerIsTrusted,
        host: seen.host ?? '',
        authorization: seen.authorization,
        apiKey: seen.apiKey,
        contentLength: seen.contentLength === undefined ? undefined : Number(seen.contentLength),
        hasBody: seen.transferEncoding !== undefined || (seen.contentLength ?? '0') !== '0',
        expectsContinue: request.headers.expect !== undefined && request.httpVersion === '1.1',
        wantsWebSocket: seen.wantsWebSocket,
        door,
        cors: cors && corsFields(cors, door, request.headers.origin),
      }
    },
  }
}

function corsFields(policies: CorsPolicies, door: Door, origin: string | undefined): CorsFields | undefined {
  if (door.kind === 'preflight') return door.fields
  return policies(door.kind === 'own' ? undefined : door.route)?.answer(origin)
}

/** Browsers can set no header field on a WebSocket: `peage.bearer.<token>` stands for one (CONTRACT §4). */
function takeBearer(request: IncomingMessage, seen: Fields): void {
  const { bearers } = offeredProtocols(request.headers['sec-websocket-protocol'])
  if (bearers.length === 0) return
  if (bearers.length > 1 || seen.authorization !== undefined) seen.ambiguous = true
  else seen.authorization = `Bearer ${bearers[0]}`
}

function refused(refusal: Refusal, route?: Route): Door {
  return route === undefined ? { kind: 'refused', refusal } : { kind: 'refused', refusal, route }
}

function malformed(): Refusal {
  return new Refusal('request_invalid', { headers: { connection: 'close' } })
}

function tooLarge(): Refusal {
  return new Refusal('headers_too_large', { headers: { connection: 'close' } })
}

function notAllowed(allow: string): Refusal {
  return new Refusal('method_not_allowed', { headers: { allow } })
}
