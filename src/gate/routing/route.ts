// A declared route made ready to serve: its path read, its methods expanded, its rewriting decided once.
import { type PathPattern, parsePathPattern } from '../../config/formats/path-pattern.ts'
import type { RouteConfig } from '../../config/schema/schema.ts'
import { toFlags } from '../parsing/path-ambiguity.ts'
import type { RequestTarget } from '../parsing/request-target.ts'
import { compileHeaderRules, type HeaderRules } from './header-rules.ts'

export interface Route extends Omit<RouteConfig, 'upstream'>, HeaderRules {
  /** Of `upstreams`. */
  readonly upstreamName: string
  readonly pattern: PathPattern
  /** Declared methods with HEAD where GET is; `undefined` stands for every method. */
  readonly allowedMethods: ReadonlySet<string> | undefined
  /** It is at one path alone. */
  readonly isLiteral: boolean
  /** Something is asked of whoever calls. */
  readonly isGuarded: boolean
  /** What its paths may hold (`uncertain`, as bits). */
  readonly allowedAmbiguities: number
  /** The path the upstream is sent, without the query. */
  upstreamPath(target: RequestTarget): string
  /** What was cut off the front, as the client wrote it (`X-Forwarded-Prefix`), or nothing. */
  strippedPrefix(target: RequestTarget): string | undefined
}

export function compileRoute({ upstream, ...config }: RouteConfig): Route {
  const pattern = parsePathPattern(config.path)
  const strip = config.strip_prefix === undefined ? 0 : parsePathPattern(config.strip_prefix).segments.length
  const rewrite = config.rewrite === undefined ? undefined : compileRewrite(config.rewrite, pattern)
  const sent = rewrite ?? (strip === 0 ? (target: RequestTarget) => target.path : cutFront(strip))
  return {
    ...config,
    upstreamName: upstream,
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
  }
}

function withHead(methods: readonly string[]): Set<string> {
  const allowed = new Set(methods)
  if (allowed.has('GET')) allowed.add('HEAD')
  return allowed
}

function cutFront(count: number): (target: RequestTarget) => string {
  return target => `/${tail(target, count)}`
}

/** What the client wrote behind its first `from` segments and the slash after them. */
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

/** `/v2/races/*` and `:param` are filled in with what the client wrote, escapes kept. */
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
    // Nothing behind the bare prefix: no slash that the client did not write.
    if (filled.length > 1 && filled.at(-1) === '' && parts.at(-1) === '*' && !target.path.endsWith('/'))
      filled.pop()
    return `/${filled.join('/')}`
  }
}
