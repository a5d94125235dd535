// Compiles a declared route: parses its path, expands its methods, and prepares its rewriting and header changes.
import { canonicalName } from '../../config/formats/header-names.ts'
import { type PathPattern, parsePathPattern } from '../../config/formats/path-pattern.ts'
import type { RouteConfig } from '../../config/sections/schema.ts'
import type { ResponseHeaderRules } from '../../upstream/response-head.ts'
import { toFlags } from '../parsing/path-ambiguity.ts'
import type { RequestTarget } from '../parsing/request-target.ts'

export interface Route extends Omit<RouteConfig, 'upstream'>, HeaderRules {
  /** A key of `upstreams`. Undefined if the route is only for forward auth. */
  readonly upstreamName: string | undefined
  readonly pattern: PathPattern
  /** The declared methods. HEAD is added if GET is declared. `undefined` for every method. */
  readonly allowedMethods: ReadonlySet<string> | undefined
  /** Whether the route matches only one path. */
  readonly isLiteral: boolean
  /** Whether `auth` is not `none`. */
  readonly isGuarded: boolean
  /** The ambiguities that paths of this route may contain, as flags of `ambiguity`. */
  readonly allowedAmbiguities: number
  /** Returns the path for the upstream, without the query. */
  upstreamPath(target: RequestTarget): string
  /** Returns the prefix that `strip_prefix` removes from the path, as the client sent it (`X-Forwarded-Prefix`). */
  strippedPrefix(target: RequestTarget): string | undefined
}

export function compileRoute(config: RouteConfig): Route {
  const pattern = parsePathPattern(config.path)
  const strip = config.strip_prefix === undefined ? 0 : parsePathPattern(config.strip_prefix).segments.length
  const rewrite = config.rewrite === undefined ? undefined : compileRewrite(config.rewrite, pattern)
  const sent = rewrite ?? (strip === 0 ? (target: RequestTarget) => target.path : cutFront(strip))
  return {
    upstreamName: config.upstream,
    pattern,
    allowedMethods: config.methods === undefined ? undefined : withHead(config.methods),
    isLiteral: !pattern.wildcard && pattern.segments.every(({ kind }) => kind === 'literal'),
    isGuarded: config.auth !== 'none',
    allowedAmbiguities: toFlags(config.allow_in_path),
    ...compileHeaderRules(config.headers),
    upstreamPath: config.allow_in_path.includes('double_slash')
      ? target => sent(target.unmergedPath === undefined ? target : { ...target, path: target.unmergedPath })
      : sent,
    strippedPrefix:
      strip === 0 ? () => undefined : target => `/${target.rawSegments.slice(0, strip).join('/')}`,
    // The spread comes last. If `config` is a structured clone, V8 takes 5 µs for each property after the spread.
    ...config,
  }
}

/** The methods that the gateway lists for clients if a route accepts every method. */
export const usualMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

function withHead(methods: readonly string[]): Set<string> {
  const allowed = new Set(methods)
  if (allowed.has('GET')) allowed.add('HEAD')
  return allowed
}

function cutFront(count: number): (target: RequestTarget) => string {
  return target => `/${tail(target, count)}`
}

/** Returns the part of the path after its first `from` segments and the next slash, as the client sent it. */
function tail({ path }: RequestTarget, from: number): string {
  let at = 0
  for (let count = 0; count < from; count++) {
    while (path[at] === '/') at++
    const end = path.indexOf('/', at)
    if (end === -1) return ''
    at = end
  }
  return path.slice(at + 1)
}

/**
 * Replaces `:param` and `*` in the rewrite, for example `/v2/races/*`, with the client's text. The text stays escaped.
 */
function compileRewrite(rewrite: string, pattern: PathPattern): (target: RequestTarget) => string {
  const positions = new Map(
    pattern.segments.flatMap((segment, index) =>
      segment.kind === 'param' ? [[segment.name, index] as const] : [],
    ),
  )
  const parts = rewrite.slice(1).split('/')
  return target => {
    const filled = parts.map(part => {
      if (part === '*') return tail(target, pattern.segments.length)
      const position = part.startsWith(':') ? positions.get(part.slice(1)) : undefined
      return position === undefined ? part : (target.rawSegments[position] as string)
    })
    // If `*` was replaced by an empty text, this text is removed. Otherwise the path would end in a slash that the
    // client did not send.
    if (filled.length > 1 && filled.at(-1) === '' && parts.at(-1) === '*' && !target.path.endsWith('/'))
      filled.pop()
    return `/${filled.join('/')}`
  }
}

interface HeaderRules {
  /** The Host header that the route sets for the upstream. Undefined if the upstream receives its target's own host. */
  readonly upstreamHost: string | undefined
  readonly requestRules: RequestHeaderRules | undefined
  readonly responseRules: ResponseHeaderRules | undefined
}

interface RequestHeaderRules {
  /** Alternating names and values. */
  readonly set: readonly string[]
  /**
   * The canonical names of the headers to remove from the request. This includes the headers in `set`. Otherwise the
   * client could send one of them in another spelling, which some upstreams would accept.
   */
  readonly remove: ReadonlySet<string>
}

function compileHeaderRules(headers: RouteConfig['headers']): HeaderRules {
  const set = Object.entries(headers?.request.set ?? {})
  const isHost = ([name]: [string, string]) => canonicalName(name) === 'host'
  return {
    upstreamHost: set.find(isHost)?.[1],
    requestRules: rulesOf(
      set.filter(field => !isHost(field)),
      headers?.request.remove,
      canonicalName,
    ),
    responseRules: rulesOf(Object.entries(headers?.response.set ?? {}), headers?.response.remove, name =>
      name.toLowerCase(),
    ),
  }
}

function rulesOf(
  set: readonly [string, string][],
  remove: readonly string[] = [],
  comparable: (name: string) => string,
): RequestHeaderRules | undefined {
  const names = new Set([...remove, ...set.map(([name]) => name)].map(comparable))
  return names.size === 0 ? undefined : { set: set.flat(), remove: names }
}
