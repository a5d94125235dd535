// What each header field is to a proxy: passed, dropped, or ours. Decided once per spelling and remembered.

export type FieldKind =
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

/**
 * The name as the laxest upstream reads it: lower case, every run of other characters one `-`, none at the ends.
 * CGI, WSGI and PHP make one variable of `X-User-Id`, `x_user_id` and `x.user.id`.
 */
export function canonicalName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/** @param name a field name as received, in any letter case */
export function fieldKind(name: string): FieldKind {
  const known = remembered.get(name)
  if (known !== undefined) return known
  const kind = classify(name)
  // A hostile client may invent names for ever; what it invents must not stay.
  if (remembered.size >= 2_000) remembered.clear()
  remembered.set(name, kind)
  return kind
}

const remembered = new Map<string, FieldKind>()

const identity = new Set(['x-user-id', 'x-user-plan', 'x-user-email', 'x-peage-assertion'])

const exact = new Set<FieldKind>([
  'authorization',
  'x-api-key',
  'host',
  'via',
  'x-request-id',
  'connection',
  'content-length',
])

const hopByHop = new Set([
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'expect',
  // RFC 9110 §7.6.1 leaves it to intermediaries; `Proxy:` becomes HTTP_PROXY in CGI (CVE-2016-5385).
  'proxy',
  // Ours to set, and never an upstream's.
  'x-peage-error',
  // Frameworks let these replace the method that the guards saw.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
])

// `X-Original-URL` and `X-Rewrite-URL` replace, in some frameworks, the path that the guards saw.
const dropped = /^(?:proxy|x-original|x-rewrite)-/

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

function classify(name: string): FieldKind {
  const canonical = canonicalName(name)
  if (identity.has(canonical)) return 'identity'
  if (hopByHop.has(canonical) || dropped.test(canonical)) return 'drop'
  if (forwarded.has(canonical) || canonical.startsWith('x-forwarded-')) return 'forwarded'
  if (exact.has(canonical as FieldKind)) {
    return name.toLowerCase() === canonical ? (canonical as FieldKind) : 'drop'
  }
  return 'pass'
}
