// A declared route made ready to serve: its path read, its methods expanded, its rewriting decided once.
import { type PathPattern, parsePathPattern } from '../config/path-pattern.ts'
import type { RouteConfig } from '../config/schema.ts'
import type { Target } from './target.ts'

export interface Route extends RouteConfig {
  readonly pattern: PathPattern
  /** Declared methods with HEAD where GET is; `undefined` stands for every method. */
  readonly allowed: ReadonlySet<string> | undefined
  /** The path the upstream is sent, without the query. */
  upstreamPath(target: Target): string
  /** What was cut off the front, as the client wrote it (`X-Forwarded-Prefix`), or nothing. */
  strippedPrefix(target: Target): string | undefined
}

export function compileRoute(config: RouteConfig): Route {
  const pattern = parsePathPattern(config.path)
  const strip = config.strip_prefix === undefined ? 0 : parsePathPattern(config.strip_prefix).segments.length
  const rewrite = config.rewrite === undefined ? undefined : compileRewrite(config.rewrite, pattern)
  return {
    ...config,
    pattern,
    allowed: config.methods === undefined ? undefined : withHead(config.methods),
    upstreamPath: rewrite ?? (strip === 0 ? target => target.path : target => `/${tail(target, strip)}`),
    strippedPrefix: strip === 0 ? () => undefined : target => `/${target.raw.slice(0, strip).join('/')}`,
  }
}

function withHead(methods: readonly string[]): Set<string> {
  const allowed = new Set(methods)
  if (allowed.has('GET')) allowed.add('HEAD')
  return allowed
}

/** The client's segments from `from` on, with its trailing slash. */
function tail(target: Target, from: number): string {
  const rest = target.raw.slice(from).join('/')
  return rest !== '' && target.path.endsWith('/') ? `${rest}/` : rest
}

/** `/v2/races/*` and `:param` are filled in with what the client wrote, escapes kept. */
function compileRewrite(rewrite: string, pattern: PathPattern): (target: Target) => string {
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
      return position === undefined ? part : (target.raw[position] as string)
    })
    // Nothing behind the bare prefix: no slash that the client did not write.
    if (filled.length > 1 && filled.at(-1) === '' && parts.at(-1) === '*' && !target.path.endsWith('/'))
      filled.pop()
    return `/${filled.join('/')}`
  }
}
