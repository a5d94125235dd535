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
  'cookie',
  'sec-websocket-protocol',
])

// Frameworks let these override the method that the guards checked.
const overrides = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

// In some frameworks `X-Original-URL` and `X-Rewrite-URL` override the path that the guards checked.
const dropped = /^x-(?:original|rewrite)-/

const forwarded = new Set([
  'forwarded',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
  'remote-user',
  'x-remote-user',
  'remote-addr',
])

function classify(name: string): HeaderKind {
  const canonical = canonicalName(name)
  if (identityNames.has(canonical)) return 'identity'
  if (isHopByHop(canonical) || overrides.has(canonical) || dropped.test(canonical)) return 'drop'
  const isForwarded = forwarded.has(canonical) || canonical.startsWith('x-forwarded-')
  if (!isForwarded && !exact.has(canonical as HeaderKind)) return 'pass'
  // Nobody vouches for an alias: a trusted proxy that sets `X-Real-IP` may let a client's `x_real_ip` through.
  if (name.toLowerCase() !== canonical) return 'drop'
  return isForwarded ? 'forwarded' : (canonical as HeaderKind)
}
