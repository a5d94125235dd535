// Classifies request headers: the gateway passes them on, drops them, or sets them itself. The results are cached by
// the exact spelling of the name.
import { canonicalName, identityNames, isHopByHop } from '../config/formats/header-names.ts'

export type HeaderKind =
  /** An end-to-end header, which the gateway forwards. */
  | 'pass'
  /**
   * A header that is dropped. It is a hop-by-hop header (RFC 9110 §7.6.1), or another spelling of a header that the
   * gateway handles. Or it overrides the method or path that the guards checked.
   */
  | 'drop'
  /**
   * A header with the caller's identity. Only the gateway may set such a header, so a client's header is dropped on
   * every route.
   */
  | 'identity'
  /** A header that describes the client. It is accepted only from trusted proxies. */
  | 'forwarded'
  | 'authorization'
  | 'x-api-key'
  /** A header that the gateway sets itself. */
  | 'host'
  | 'via'
  | 'x-request-id'
  | 'connection'
  | 'content-length'
  /** Limits how often OPTIONS and TRACE are forwarded. */
  | 'max-forwards'
  /** May contain an operator's session or a sign-in in progress. Only the gateway may read them. */
  | 'cookie'
  /** May contain a bearer token, which only the gateway may read. */
  | 'sec-websocket-protocol'

/** @param name a header name as received, in any letter case */
export function headerKind(name: string): HeaderKind {
  const known = kindCache.get(name)
  if (known !== undefined) return known
  const kind = classify(name)
  // Limits the cache, because a hostile client can send an unlimited number of new names.
  if (kindCache.size >= 2_000) kindCache.clear()
  kindCache.set(name, kind)
  return kind
}

const kindCache = new Map<string, HeaderKind>()

const exact = new Set<HeaderKind>([
  'authorization',
  'x-api-key',
  'host',
  'via',
  'x-request-id',
  'connection',
  'content-length',
  'max-forwards',
  'cookie',
  'sec-websocket-protocol',
])

// Some frameworks let these headers override the method that the guards checked.
const overrides = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

// In some frameworks, `X-Original-URL` and `X-Rewrite-URL` override the path that the guards checked.
const dropped = /^x-(?:original|rewrite)-/

// These headers describe the client: address, host, user or certificate. Services trust them, because proxies set them.
const forwardedNames = new Set([
  'coming-from',
  'x-coming-from',
  'x-custom-ip-authorization',
  'x-vercel-proxied-for',
  'remote-host',
  'x-remote-host',
  'remote-user',
  'x-remote-user',
  'x-arr-ssl',
])

const forwardedPatterns = [
  // `Forwarded`, `X-Forwarded-For`, `Forwarded-For`, `X-Vercel-Forwarded-For`.
  /^(?:x-)?forwarded(?:-|$)|(?:^|-)forward(?:ed)?-for(?:-ip)?$/,
  // `Client-IP`, `X-Real-IP`, `CF-Connecting-IPv6`, `X-Azure-ClientIP`, `X-NF-Client-Connection-IP`.
  /(?:^|-)(?:client|connecting|originating|proxyuser|pseudo|real|remote|socket|source|src|true|user)(?:-connection)?-?ip(?:v?[46])?(?:-?addr(?:ess)?)?$/,
  // `Remote-Addr`, `X-Remote-Address`, `X-Envoy-External-Address`, `CloudFront-Viewer-Address`.
  /(?:^|-)(?:client|remote|envoy-external|viewer)-addr(?:ess)?$/,
  // `SSL-Client-Verify`, `X-SSL-Client-S-DN`, `X-TLS-Client-Cert`, `X-SSL-Issuer`, `X-Amzn-Mtls-Clientcert`.
  /(?:^|-)(?:mtls(?:-|$)|(?:ssl|tls)-?client|(?:ssl|tls)-(?:cert|issuer|subject|verif))/,
  // `Client-Cert` and `Client-Cert-Chain` (RFC 9440), `X-ARR-ClientCert`, `X-Client-Certificate`.
  /(?:^|-)(?:client|peer)-?cert(?:ificate)?(?:-|$)/,
  // `X-Client-Verify`, `X-Client-DN`.
  /(?:^|-)client-(?:verify|verified|(?:[si]-|subject-|issuer-)?dn)$/,
]

function describesClient(canonical: string): boolean {
  return forwardedNames.has(canonical) || forwardedPatterns.some(pattern => pattern.test(canonical))
}

function classify(name: string): HeaderKind {
  const canonical = canonicalName(name)
  if (identityNames.has(canonical)) return 'identity'
  if (isHopByHop(canonical) || overrides.has(canonical) || dropped.test(canonical)) return 'drop'
  const isForwarded = describesClient(canonical)
  if (!isForwarded && !exact.has(canonical as HeaderKind)) return 'pass'
  // Another spelling of a name is dropped even if it comes from a trusted proxy. A proxy may replace `X-Real-IP`, but
  // pass on the `x_real_ip` of a client.
  if (name.toLowerCase() !== canonical) return 'drop'
  return isForwarded ? 'forwarded' : (canonical as HeaderKind)
}
