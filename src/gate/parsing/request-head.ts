// What the head of a request says before any route is known: who sent it, what it presents, where it wants to go.
import type { IncomingMessage } from 'node:http'
import { maxHeaderBytes } from '../../http/http-server.ts'
import { Refusal } from '../../refusals/refusal.ts'
import { isPrivate, normalizeAddress, type TrustedProxies } from './client-address.ts'
import { hasValidFraming, type RequestHeaders, scanHeaders } from './request-headers.ts'
import { safeId } from './request-ids.ts'
import { isHost, parseRequestTarget, type RequestTarget } from './request-target.ts'

export interface RequestHead {
  /** The client's own `X-Request-Id`, where it is safe to keep. */
  readonly clientRequestId: string | undefined
  /** The client's address, as far as trusted proxies tell it. */
  readonly client: string
  /** Whether the peer is a trusted proxy. */
  readonly peerIsTrusted: boolean
  /** A private peer that forwards for others and is not trusted: all its clients share one limit. */
  readonly untrustedForwarder: string | undefined
  /** The Host header, as received; empty where an HTTP/1.0 client named none. */
  readonly host: string
  /** The values of the headers that were there once; `undefined` where absent. On a route, `authorization` may come from a sub-protocol. */
  authorization: string | undefined
  readonly apiKey: string | undefined
  /** Two `Authorization` or two `X-API-Key` headers. */
  hasAmbiguousCredentials: boolean
  /** Declared length of the body; `undefined` where it is chunked or there is none. */
  readonly contentLength: number | undefined
  readonly hasBody: boolean
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Where it wants to go, or why it may go nowhere. */
  readonly target: RequestTarget | Refusal
}

/** Pure: the same request gives the same head. */
export function parseRequestHead(request: IncomingMessage, proxies: TrustedProxies): RequestHead {
  const seen = scanHeaders(request.rawHeaders)
  const peer = request.socket.remoteAddress ?? ''
  const peerIsTrusted = proxies.trusts(peer)
  const forwards = !peerIsTrusted && seen.forwardedFor !== '' && isPrivate(peer)
  return {
    clientRequestId: safeId.test(seen.requestId ?? '') ? seen.requestId : undefined,
    client: peerIsTrusted ? proxies.clientOf(peer, seen.forwardedFor) : normalizeAddress(peer),
    peerIsTrusted,
    untrustedForwarder: forwards ? normalizeAddress(peer) : undefined,
    host: seen.host ?? '',
    authorization: seen.authorization,
    apiKey: seen.apiKey,
    hasAmbiguousCredentials: seen.hasAmbiguousCredentials,
    contentLength: seen.contentLength === undefined ? undefined : Number(seen.contentLength),
    hasBody: seen.transferEncoding !== undefined || (seen.contentLength ?? '0') !== '0',
    expectsContinue: request.headers.expect !== undefined && request.httpVersion === '1.1',
    target: targetOf(request, seen),
  }
}

function targetOf(request: IncomingMessage, seen: RequestHeaders): RequestTarget | Refusal {
  if (seen.bytes > maxHeaderBytes) return closing('headers_too_large')
  if (seen.isMalformed || !hasValidFraming(request, seen)) return malformed()
  const target = parseRequestTarget(request.url ?? '')
  if (target === undefined) return new Refusal('path_invalid')
  // Host itself was looked at above.
  if (target.authority !== undefined && !isHost(target.authority)) return malformed()
  return target
}

/** The request cannot be read in one way only: nothing that follows on its connection can be trusted. */
export function malformed(): Refusal {
  return closing('request_invalid')
}

function closing(code: 'headers_too_large' | 'request_invalid'): Refusal {
  return new Refusal(code, { headers: { connection: 'close' } })
}
