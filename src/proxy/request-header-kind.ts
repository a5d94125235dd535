// Classifies request headers: passed, dropped, or set by the gateway. Cached per spelling.
import { canonicalName, identityNames, isHopByHop } from '../config/formats/header-names.ts'

export type HeaderKind =
  /** End-to-end: forwarded. */
  | 'pass'
  /** Hop-by-hop (RFC 9110 §7.6.1), or an alias or override of what the guards checked: dropped. */
  | 'drop'
  /** The caller's identity, which only the gateway may set: dropped on every route (CONTRACT §6). */
  | 'identity'
  /** Accepted from trusted proxies only. */
  | 'forwarded'
  | 'authorization'
  | 'x-api-key'
  /** The gateway sets its own. */
  | 'host'
  | 'via'
  | 'x-request-id'
  | 'connection'
  | 'content-length'
  /** Limits how often OPTIONS and TRACE are forwarded. */
  | 'max-forwards'
  /** May carry an operator's session, which is the admin listener's alone. */
  | 'cookie'
  /** May carry a bearer token that only the gateway may read (CONTRACT §4). */
  | 'sec-websocket-protocol'

/** @param name a header name as received, in any letter case */
export function headerKind(name: string): HeaderKind {
  const known = kindCache.get(name)
  if (known !== undefined) return known
  const kind = classify(name)
  // Bounds the cache: a hostile client can send new names without end.
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

// Frameworks let these override the method that the guards checked.
const overrides = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

// In some frameworks `X-Original-URL` and `X-Rewrite-URL` override the path that the guards checked.
const dropped = /^x-(?:original|rewrite)-/

// These fields describe the client: address, host, user or certificate. Services believe them, because proxies set them.
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
  // Nobody vouches for an alias: a trusted proxy that sets `X-Real-IP` may let a client's `x_real_ip` through.
  if (name.toLowerCase() !== canonical) return 'drop'
  return isForwarded ? 'forwarded' : (canonical as HeaderKind)
}
