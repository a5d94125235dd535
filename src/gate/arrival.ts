// What is known of a request before any guard: who sent it, where it wants to go, what it presents.
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../refusals/refusal.ts'
import { isPrivate, plainAddress, type TrustedProxies } from './client-address.ts'
import type { Route } from './route.ts'
import type { RouteTable } from './route-table.ts'
import { comparableHost, isHost, readTarget, type Target } from './target.ts'

/** Where a request goes: to an endpoint of ours, through the guards of a route, or nowhere. */
export type Door =
  | { readonly kind: 'own'; readonly path: string }
  | { readonly kind: 'route'; readonly route: Route; readonly target: Target }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

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
  readonly door: Door
}

export interface Arrivals {
  read(request: IncomingMessage): Arrival
}

interface Parts {
  /** The endpoint of ours at a path, `unknown` where the path is ours and nothing is there, or nothing of ours. */
  findOwn(segments: readonly string[]): { path: string; methods: readonly string[] } | 'unknown' | undefined
  routes: RouteTable
  proxies: TrustedProxies
  /** Told of every private peer that forwards for somebody and is not trusted: all its clients share one limit. */
  onUntrustedForwarder(peer: string): void
  /** A fresh request id, for clients that sent none. */
  newRequestId(): string
}

export function createArrivals({
  findOwn,
  routes,
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
    if (authority !== '' && !isHost(authority)) return refused(malformed())

    const ours = findOwn(target.segments)
    if (ours === 'unknown') return refused(new Refusal('route_unknown'))
    if (ours !== undefined) {
      if (!ours.methods.includes(request.method ?? '')) return refused(notAllowed(ours.methods.join(', ')))
      return { kind: 'own', path: ours.path }
    }

    const host = comparableHost(authority)
    const match = routes.match(request.method ?? '', host, target.segments)
    if (match.kind === 'none') return refused(new Refusal('route_unknown'))
    if (match.kind === 'method') return refused(notAllowed(match.allow))
    // An authority that disagrees with Host counts where a route names it; else one of the two is a lie.
    if (
      target.authority !== undefined &&
      comparableHost(seen.host ?? '') !== host &&
      match.route.hosts.length === 0
    ) {
      return refused(malformed())
    }
    // Two readers may take two different fields; on every route, guarded or not (CONTRACT §4).
    if (seen.ambiguous) return refused(new Refusal('credentials_ambiguous'))
    return { kind: 'route', route: match.route, target }
  }

  return {
    read(request) {
      const seen = readFields(request.rawHeaders)
      const peer = request.socket.remoteAddress ?? ''
      const peerIsTrusted = proxies.trusts(peer)
      if (!peerIsTrusted && seen.forwardedFor !== '' && isPrivate(peer))
        onUntrustedForwarder(plainAddress(peer))
      return {
        requestId: safeToken.test(seen.requestId ?? '') ? (seen.requestId as string) : newRequestId(),
        client: peerIsTrusted ? proxies.clientOf(peer, seen.forwardedFor) : plainAddress(peer),
        peerIsTrusted,
        host: seen.host ?? '',
        authorization: seen.authorization,
        apiKey: seen.apiKey,
        contentLength: seen.contentLength === undefined ? undefined : Number(seen.contentLength),
        hasBody: seen.transferEncoding !== undefined || (seen.contentLength ?? '0') !== '0',
        expectsContinue: request.headers.expect !== undefined && request.httpVersion === '1.1',
        door: findDoor(request, seen),
      }
    },
  }
}

interface Fields {
  host: string | undefined
  authorization: string | undefined
  apiKey: string | undefined
  requestId: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  forwardedFor: string
  /** All fields as they stood on the wire. */
  bytes: number
  /** Two `Authorization` or two `X-API-Key` fields. */
  ambiguous: boolean
  /** Two `Host` fields, or two of those that frame the body. */
  malformed: boolean
}

/** 16 KiB (CONTRACT §4); Node's own limit counts no separators, so a thousand small fields slip under it. */
const maxFieldBytes = 16_384

const safeToken = /^[A-Za-z0-9._:~+/=-]{1,128}$/

/** One walk over the raw fields: Node's own table joins or drops what was sent twice, which is what must be seen. */
function readFields(raw: readonly string[]): Fields {
  const seen: Fields = {
    host: undefined,
    authorization: undefined,
    apiKey: undefined,
    requestId: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    forwardedFor: '',
    bytes: 0,
    ambiguous: false,
    malformed: false,
  }
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string
    const value = raw[i + 1] as string
    seen.bytes += name.length + value.length + 4
    switch (name.length) {
      case 4:
        if (!named(name, 'host')) break
        if (seen.host !== undefined) seen.malformed = true
        seen.host = value
        break
      case 9:
        if (!named(name, 'x-api-key')) break
        if (seen.apiKey !== undefined) seen.ambiguous = true
        seen.apiKey = value
        break
      case 12:
        if (named(name, 'x-request-id')) seen.requestId = value
        break
      case 13:
        if (!named(name, 'authorization')) break
        if (seen.authorization !== undefined) seen.ambiguous = true
        seen.authorization = value
        break
      case 14:
        if (!named(name, 'content-length')) break
        if (seen.contentLength !== undefined) seen.malformed = true
        seen.contentLength = value
        break
      case 15:
        if (named(name, 'x-forwarded-for')) {
          seen.forwardedFor = seen.forwardedFor === '' ? value : `${seen.forwardedFor},${value}`
        }
        break
      case 17:
        if (!named(name, 'transfer-encoding')) break
        if (seen.transferEncoding !== undefined) seen.malformed = true
        seen.transferEncoding = value
        break
    }
  }
  return seen
}

function named(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/** What the parser lets through and an upstream may frame differently (RFC 9112 §3.2, §6.1, §6.3; RFC 9110 §10.1.1; CONTRACT §4). */
function isWellFormed(request: IncomingMessage, seen: Fields): boolean {
  if (request.httpVersionMajor !== 1) return false
  const isOld = request.httpVersionMinor === 0
  if (seen.host === undefined && !isOld) return false
  if (seen.host !== undefined && seen.host !== '' && !isHost(seen.host)) return false
  const { expect } = request.headers
  if (expect !== undefined && expect.toLowerCase() !== '100-continue') return false
  if (seen.contentLength !== undefined && !isLength(seen.contentLength)) return false
  if (seen.transferEncoding === undefined) return true
  return !isOld && seen.contentLength === undefined && seen.transferEncoding.toLowerCase() === 'chunked'
}

/** Digits, and few enough that a number holds them exactly. */
function isLength(value: string): boolean {
  return /^\d+$/.test(value) && Number.isSafeInteger(Number(value))
}

function refused(refusal: Refusal): Door {
  return { kind: 'refused', refusal }
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
