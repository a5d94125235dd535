// Parses a request target by the path rules of CONTRACT §6, before anything is matched.
import { ambiguitiesOf } from './path-ambiguity.ts'

/** A request target that passed the path rules. */
export interface RequestTarget {
  /** The authority of an absolute-form target (RFC 9112 §3.2.2), which then names the host. */
  readonly authority: string | undefined
  /** The path for the upstream: the client's, with duplicate slashes merged, escapes and letter case unchanged. */
  readonly path: string
  /** The path before merging, if it has duplicate slashes. */
  readonly unmergedPath: string | undefined
  /** From the `?` on; empty without one. */
  readonly query: string
  /** The path's segments as the client sent them. */
  readonly rawSegments: readonly string[]
  /** The segments to match by: decoded once, ASCII letters in lower case. */
  readonly segments: readonly string[]
  /** What a route must allow for this path, as flags of `ambiguity`; 0 for nearly every path. */
  readonly ambiguities: number
}

/**
 * Parses a request target; `undefined` if the path rules refuse it on every route (400 `Chemin invalide`). One with
 * `ambiguities` is also refused, except on a route that allows them.
 */
export function parseRequestTarget(target: string): RequestTarget | undefined {
  let authority: string | undefined
  let rest = target
  if (rest.charCodeAt(0) !== 0x2f) {
    const absolute = absoluteForm.exec(rest)
    if (absolute === null) return undefined
    authority = absolute[1] as string
    rest = absolute[2] as string
    if (rest.charCodeAt(0) !== 0x2f) rest = `/${rest}`
  }
  const mark = rest.indexOf('?')
  const path = mark === -1 ? rest : rest.slice(0, mark)
  const query = mark === -1 ? '' : rest.slice(mark)
  if (query !== '' && forbiddenInQuery.test(query)) return undefined
  const read = readPath(path)
  if (read === undefined) return undefined
  // Copied one by one: a spread takes longer than all the rest.
  const { unmergedPath, rawSegments, segments, ambiguities } = read
  return { authority, path: read.path, unmergedPath, query, rawSegments, segments, ambiguities }
}

/**
 * A valid Host: a name, an IPv4 or a bracketed IPv6 address, and an optional port. Laxer upstreams may interpret
 * `a@b` or `a/../b` differently, so they are refused rather than forwarded (RFC 9110 §7.2).
 */
export function isHost(value: string): boolean {
  return hostSyntax.test(value)
}

/** A host as routes compare it: lower case, without port and final dot. */
export function normalizeHost(value: string): string {
  return value.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

// The authority ends where path or query begins. Behind an `@` another one would follow (RFC 9110 §4.2.4).
const absoluteForm = /^https?:\/\/([^/?#@]+)((?:[/?].*)?)$/i
const hostSyntax = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/
// A raw `#` is not allowed in a target (RFC 9112 §3.2): some servers cut there, others do not.
const forbiddenInQuery = /[^!"$-~\x80-\xff]/
// Paths that need the full rules: escapes, unusual characters, empty segments, and segments that end in a dot.
const needsDecoding = /[^A-Za-z0-9/_~!$&'()*+,=:@.-]|\/\/|\.(?:\/|$)/
const forbiddenRaw = /[^\u0021-\u007e]|[\\#]/

type ParsedPath = Omit<RequestTarget, 'authority' | 'query'>

/** Most paths recur. Bounded, because a hostile client can send new ones without end. */
const pathCache = new Map<string, ParsedPath>()
const maxCachedPaths = 2_000
const maxCachedPathLength = 200

function readPath(path: string): ParsedPath | undefined {
  const known = pathCache.get(path)
  if (known !== undefined) return known
  const read = parsePath(path)
  if (read === undefined || path.length > maxCachedPathLength) return read
  if (pathCache.size >= maxCachedPaths) pathCache.clear()
  pathCache.set(path, read)
  return read
}

function parsePath(path: string): ParsedPath | undefined {
  if (!needsDecoding.test(path)) {
    const rawSegments = splitPath(path)
    const folded = path.toLowerCase()
    const segments = folded === path ? rawSegments : splitPath(folded)
    return { path, unmergedPath: undefined, rawSegments, segments, ambiguities: 0 }
  }
  if (forbiddenRaw.test(path)) return undefined
  const merged = path.replace(/\/{2,}/g, '/')
  const raw = splitPath(merged)
  const segments: string[] = []
  let ambiguities = 0
  for (const segment of raw) {
    const decoded = decodeOnce(segment)
    const needed = decoded === undefined ? undefined : ambiguitiesOf(decoded)
    if (decoded === undefined || needed === undefined) return undefined
    ambiguities |= needed
    segments.push(foldAscii(decoded))
  }
  const unmergedPath = merged === path ? undefined : path
  return { path: merged, unmergedPath, rawSegments: raw, segments, ambiguities }
}

/** `/a/b/` and `/a/b` both give `[a, b]`: a trailing slash is ignored in matching. */
function splitPath(path: string): string[] {
  const end = path.endsWith('/') ? path.length - 1 : path.length
  return end < 1 ? [] : path.slice(1, end).split('/')
}

/** `decodeURIComponent` rejects escapes that are broken, overlong or not UTF-8. */
function decodeOnce(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** ASCII letters only (CONTRACT §6): `toLowerCase()` would fold the Kelvin sign into `k` too. */
function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase())
}
