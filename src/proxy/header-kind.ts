// What each header field is to a proxy: passed, dropped, or ours. Decided once per spelling and remembered.
import { canonicalName, identityNames, isHopByHop } from '../config/formats/header-names.ts'

export type HeaderKind =
  /** End to end: passed on. */
  | 'pass'
  /** Hop by hop (RFC 9110 §7.6.1), or an alias of a field that decides something: dropped. */
  | 'drop'
  /** Only the gateway may say who calls: dropped on every route (CONTRACT §6). */
  | 'identity'
  /** Believed from trusted proxies only. */
  | 'forwarded'
  | 'authorization'
  | 'x-api-key'
  /** The gateway sends its own. */
  | 'host'
  | 'via'
  | 'x-request-id'
  | 'connection'
  | 'content-length'
  /** May carry a bearer token that is ours alone to read (CONTRACT §4). */
  | 'sec-websocket-protocol'

/** @param name a field name as received, in any letter case */
export function headerKind(name: string): HeaderKind {
  const known = kindCache.get(name)
  if (known !== undefined) return known
  const kind = classify(name)
  // A hostile client may invent names for ever; what it invents must not stay.
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
  'sec-websocket-protocol',
])

// Frameworks let these replace the method that the guards saw.
const overrides = new Set(['x-http-method-override', 'x-http-method', 'x-method-override'])

// `X-Original-URL` and `X-Rewrite-URL` replace, in some frameworks, the path that the guards saw.
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
  if (forwarded.has(canonical) || canonical.startsWith('x-forwarded-')) return 'forwarded'
  if (exact.has(canonical as HeaderKind)) {
    return name.toLowerCase() === canonical ? (canonical as HeaderKind) : 'drop'
  }
  return 'pass'
}
