// Parses and validates a request target, before anything is matched.
import { ambiguitiesOf } from './path-ambiguity.ts'

export interface RequestTarget {
  /** The authority of an absolute-form target (RFC 9112 §3.2.2). It replaces the Host header. */
  readonly authority: string | undefined
  /**
   * The client's path, with duplicate slashes merged. Escapes and letter case are unchanged. By default, the upstream
   * receives this path.
   */
  readonly path: string
  /** The client's path as received, if it contains duplicate slashes; otherwise undefined. */
  readonly unmergedPath: string | undefined
  /** The query, including the `?`; empty without one. */
  readonly query: string
  /** The segments of the path as the client sent them. */
  readonly rawSegments: readonly string[]
  /** The segments for matching: decoded once, with ASCII letters in lower case. */
  readonly segments: readonly string[]
  /** The ambiguities that a route must allow for this path, as flags of `ambiguity`; usually 0. */
  readonly ambiguities: number
}

/**
 * Parses a request target. Returns `undefined` if the path is invalid on every route (400 `Chemin invalide`). A target
 * with `ambiguities` is valid only on a route that allows all of them.
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
  // The properties are copied one by one, because a spread would take longer than the rest of this function.
  const { unmergedPath, rawSegments, segments, ambiguities } = read
  return { authority, path: read.path, unmergedPath, query, rawSegments, segments, ambiguities }
}

/**
 * Returns whether the value is a valid Host: a name, an IPv4 address or a bracketed IPv6 address, and an optional port.
 * Values such as `a@b` or `a/../b` are refused, because laxer upstreams may interpret them differently (RFC 9110 §7.2).
 */
export function isHost(value: string): boolean {
  return hostSyntax.test(value)
}

/** Returns the host in the form that routes compare: lower case, without port and final dot. */
export function normalizeHost(value: string): string {
  return value.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase()
}

// The authority ends before the path or query. It must not contain `@`, because the text before `@` is not part of the
// host (RFC 9110 §4.2.4).
const absoluteForm = /^https?:\/\/([^/?#@]+)((?:[/?].*)?)$/i
const hostSyntax = /^(?:[A-Za-z0-9._~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?$/
// A raw `#` is not allowed in a target (RFC 9112 §3.2), because only some servers cut the target there.
const forbiddenInQuery = /[^!"$-~\x80-\xff]/
// Matches paths that contain escapes, unusual characters, empty segments, or segments that end in a dot. All other
// paths need no decoding.
const needsDecoding = /[^A-Za-z0-9/_~!$&'()*+,=:@.-]|\/\/|\.(?:\/|$)/
const forbiddenRaw = /[^\u0021-\u007e]|[\\#]/

type ParsedPath = Omit<RequestTarget, 'authority' | 'query'>

/**
 * Caches parsed paths, because most paths repeat. The size of the cache is limited, because a hostile client can send
 * an unlimited number of new paths.
 */
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

/** Splits the path. `/a/b/` and `/a/b` both give `[a, b]`, because matching ignores a trailing slash. */
function splitPath(path: string): string[] {
  const end = path.endsWith('/') ? path.length - 1 : path.length
  return end < 1 ? [] : path.slice(1, end).split('/')
}

/**
 * Returns undefined for escapes that are broken, overlong or not UTF-8, because `decodeURIComponent` throws for them.
 */
function decodeOnce(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/** Changes only ASCII letters to lower case. `toLowerCase()` would also change the Kelvin sign into `k`. */
function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase())
}
