// Parses the head of a request before routing: its client, credentials, framing and target.
import type { IncomingMessage } from 'node:http'
import { isPrivate, normalizeAddress, type TrustedProxies } from '../../http/client-address.ts'
import { maxHeaderBytes } from '../../http/http-server.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { isLastHop } from './max-forwards.ts'
import { hasValidExpectation, hasValidFraming, type RequestHeaders, scanHeaders } from './request-headers.ts'
import { safeId } from './request-ids.ts'
import { isHost, parseRequestTarget, type RequestTarget } from './request-target.ts'

export interface RequestHead {
  /** The client's own `X-Request-Id`, if it is safe to use. */
  readonly clientRequestId: string | undefined
  /** The address at the other end of the connection. */
  readonly peer: string
  /** The client's address. If the peer is a trusted proxy, the address is read from `X-Forwarded-For`. */
  readonly client: string
  readonly peerIsTrusted: boolean
  /**
   * The address of the peer, if the peer seems to be a load balancer that is missing from the trusted proxies. That is,
   * the address is private, and the request has `X-Forwarded-For`. All clients behind this peer share one rate limit.
   */
  readonly untrustedForwarder: string | undefined
  /** The Host header, as received; empty if an HTTP/1.0 client sent none. */
  readonly host: string
  /** The value of the `Authorization` header. On a WebSocket route, the token may come from a subprotocol instead. */
  authorization: string | undefined
  readonly apiKey: string | undefined
  /**
   * Whether there are two `Authorization` headers or two `X-API-Key` headers. On a WebSocket route, also whether a
   * subprotocol contains a second credential.
   */
  hasAmbiguousCredentials: boolean
  /** The declared length of the body; undefined if it is chunked or absent. */
  readonly contentLength: number | undefined
  readonly hasBody: boolean
  /** Whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Whether `Max-Forwards` is 0, so the gateway itself must respond (RFC 9110 §7.6.2). */
  readonly isLastHop: boolean
  /** The parsed target, or the refusal if the request is invalid. */
  readonly target: RequestTarget | Refusal
}

/** Returns the target of a request, or the refusal if the request is invalid. */
type ReadTarget = (request: IncomingMessage, seen: RequestHeaders) => RequestTarget | Refusal

/** Parses the head of a request, without side effects. The same request always gives the same head. */
export function parseRequestHead(
  request: IncomingMessage,
  proxies: TrustedProxies,
  readTarget: ReadTarget = targetOf,
): RequestHead {
  const seen = scanHeaders(request.rawHeaders)
  const address = request.socket.remoteAddress ?? ''
  const peer = normalizeAddress(address)
  const peerIsTrusted = proxies.trusts(address)
  const forwards = !peerIsTrusted && seen.forwardedFor !== '' && isPrivate(address)
  return {
    clientRequestId: safeId.test(seen.requestId ?? '') ? seen.requestId : undefined,
    peer,
    client: peerIsTrusted ? proxies.clientOf(address, seen.forwardedFor) : peer,
    peerIsTrusted,
    untrustedForwarder: forwards ? peer : undefined,
    host: seen.host ?? '',
    authorization: seen.authorization,
    apiKey: seen.apiKey,
    hasAmbiguousCredentials: seen.hasAmbiguousCredentials,
    contentLength: seen.contentLength === undefined ? undefined : Number(seen.contentLength),
    hasBody: seen.transferEncoding !== undefined || (seen.contentLength ?? '0') !== '0',
    expectsContinue: request.headers.expect !== undefined && request.httpVersion === '1.1',
    isLastHop: isLastHop(request),
    target: readTarget(request, seen),
  }
}

/** Returns the refusal if the headers are too large or the message is malformed; otherwise undefined. */
export function refuseMessage(request: IncomingMessage, seen: RequestHeaders): Refusal | undefined {
  if (seen.bytes > maxHeaderBytes) return closing('headers_too_large')
  return seen.isMalformed || !hasValidFraming(request, seen) ? malformed() : undefined
}

function targetOf(request: IncomingMessage, seen: RequestHeaders): RequestTarget | Refusal {
  const refused = refuseMessage(request, seen)
  if (refused !== undefined) return refused
  if (!hasValidExpectation(request)) return malformed()
  const target = parseRequestTarget(request.url ?? '')
  if (target === undefined) return new Refusal('path_invalid')
  // `hasValidFraming` has already checked Host, so only the authority is checked here.
  if (target.authority !== undefined && !isHost(target.authority)) return malformed()
  return target
}

/**
 * Returns the refusal of a malformed request, which also closes the connection. Servers could interpret the request
 * differently, so later bytes on the connection cannot be trusted.
 */
export function malformed(): Refusal {
  return closing('request_invalid')
}

function closing(code: 'headers_too_large' | 'request_invalid'): Refusal {
  return new Refusal(code, { headers: { connection: 'close' } })
}
