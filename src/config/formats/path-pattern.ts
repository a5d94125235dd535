// Parses and compares the patterns of `routes[].path`: literal segments, `:param` segments, and a trailing `/*`.

type Segment =
  /** `value` is percent-decoded once, and its ASCII letters are lower-cased. The same is done with request paths. */
  { readonly kind: 'literal'; readonly value: string } | { readonly kind: 'param'; readonly name: string }

export interface PathPattern {
  readonly segments: readonly Segment[]
  /** Whether the pattern ends in `/*`. If so, it matches the path before `/*` and every path below that path. */
  readonly wildcard: boolean
}

/**
 * The error for a path that a route cannot have. The message continues a sentence that begins with the name of the key.
 */
export class PathPatternError extends Error {
  override readonly name = 'PathPatternError'
}

/**
 * Parses the path of a route and ignores a trailing slash. Refuses control characters and `\`, `;`, `#` and `?`.
 * Without `allow_in_path: semicolon`, requests cannot contain any of them in a path.
 * @throws PathPatternError
 */
export function parsePathPattern(path: string): PathPattern {
  if (!path.startsWith('/')) throw new PathPatternError('must start with /')
  const forbidden = /[\\;#?]/.exec(path)
  if (forbidden) throw new PathPatternError(`must not contain ${forbidden[0]}`)
  if (!path.isWellFormed() || /\p{Cc}/u.test(path)) {
    throw new PathPatternError('must not contain control characters')
  }
  const parts = path.slice(1).split('/')
  if (parts.at(-1) === '') parts.pop()
  const wildcard = parts.at(-1) === '*'
  if (wildcard) parts.pop()
  const segments = parts.map(parseSegment)
  const names = segments.flatMap(segment => (segment.kind === 'param' ? [segment.name] : []))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new PathPatternError(`contains the parameter :${twice} twice`)
  return { segments, wildcard }
}

/**
 * Returns a text for comparison. The texts of two patterns are equal if the patterns match the same paths. So the texts
 * do not contain the names of parameters. The separator `/` is unambiguous, because no literal contains it.
 */
export function comparisonKey({ segments, wildcard }: PathPattern): string {
  const parts = segments.map(segment => (segment.kind === 'param' ? ':' : `=${segment.value}`))
  return `${parts.join('/')}${wildcard ? '/*' : ''}`
}

export function overlap(a: PathPattern, b: PathPattern): boolean {
  const shared = Math.min(a.segments.length, b.segments.length)
  for (let index = 0; index < shared; index++) {
    const [one, other] = [a.segments[index], b.segments[index]]
    if (one?.kind === 'literal' && other?.kind === 'literal' && one.value !== other.value) return false
  }
  return (
    (a.wildcard || a.segments.length >= b.segments.length) &&
    (b.wildcard || b.segments.length >= a.segments.length)
  )
}

/**
 * Whether `outer` matches every path that `inner` matches. To check a request path, pass its segments in `inner` as
 * literals, decoded and in lower case, without a wildcard.
 */
export function covers(outer: PathPattern, inner: PathPattern): boolean {
  const within = outer.segments.every((segment, index) => {
    const other = inner.segments[index]
    if (other === undefined || segment.kind === 'param') return other !== undefined
    return other.kind === 'literal' && other.value === segment.value
  })
  return within && (outer.wildcard || (!inner.wildcard && inner.segments.length === outer.segments.length))
}

/**
 * Whether `a` wins over `b` for a path that both patterns match. The segments are compared from the left. A literal
 * wins over `:param`, and `:param` wins over `*`.
 */
export function isMoreSpecific(a: PathPattern, b: PathPattern): boolean {
  for (const [index, segment] of a.segments.entries()) {
    const other = b.segments[index]
    if (other === undefined) return true
    if (segment.kind !== other.kind) return segment.kind === 'literal'
  }
  return a.segments.length === b.segments.length && !a.wildcard && b.wildcard
}

/** The gateway serves these paths itself. They win over every route, and no route can declare or forward them. */
const ownedPatterns: readonly PathPattern[] = [
  '/api/v1/auth/*',
  '/api/v1/user/api-token/*',
  '/api/v1/user/webhook/*',
  '/.well-known/jwks.json',
].map(parsePathPattern)

/**
 * Whether the gateway itself serves every path that the pattern matches. False if the pattern also matches other paths.
 * A route may have such a pattern, but the gateway's own paths win over the route.
 */
export function ownedByGateway(pattern: PathPattern): boolean {
  return ownedPatterns.some(owned => covers(owned, pattern))
}

/** Whether the path is one of the gateway's own paths, or lies above or below one of them. */
export function touchesGatewayPath(path: PathPattern): boolean {
  const below = { ...path, wildcard: true }
  return [...ownedPatterns, upgradePattern].some(owned => overlap({ ...owned, wildcard: true }, below))
}

/** The gateway serves this path too, unless a route replaces it. */
const upgradePattern = parsePathPattern('/api/v1/subscription/upgrade')

/** Whether a path belongs to the gateway. @param path the segments, percent-decoded and lower-cased */
export function isGatewayPath(path: readonly string[]): boolean {
  const segments = path.map(value => ({ kind: 'literal', value }) as const)
  return ownedByGateway({ segments, wildcard: false })
}

function parseSegment(part: string): Segment {
  if (part === '') throw new PathPatternError('must not contain an empty segment (//)')
  if (part.includes('*')) {
    throw new PathPatternError('may contain * only as the whole last segment (write %2A for a literal *)')
  }
  if (/[{}]/.test(part)) {
    // A URI cannot contain raw braces (RFC 3986 §2). Operators may write them, because other gateways use braces for
    // parameters. The message does not quote the segment, because a part of it may be the content of a `${file:}`.
    throw new PathPatternError(
      'contains braces; write a parameter as a whole segment such as :id (write %7B and %7D for literal braces)',
    )
  }
  if (part.startsWith(':')) {
    const name = part.slice(1)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new PathPatternError(
        `has the invalid parameter name ${part}; use letters, digits and _, and do not start with a digit`,
      )
    }
    return { kind: 'param', name }
  }
  return { kind: 'literal', value: decodeLiteral(part).replace(/[A-Z]/g, letter => letter.toLowerCase()) }
}

function decodeLiteral(part: string): string {
  let value: string
  try {
    value = decodeURIComponent(part)
  } catch {
    throw new PathPatternError(`has an invalid percent-escape in ${part} (write %25 for a literal %)`)
  }
  if (/[/\\;#?\p{Cc}]|%[0-9A-Fa-f]{2}/u.test(value)) {
    throw new PathPatternError(`has a percent-escape in ${part} that is not allowed in this path`)
  }
  if (value === '.' || value === '..') throw new PathPatternError('must not contain . or .. segments')
  if (/[. ]$/.test(value))
    throw new PathPatternError('must not have a segment that ends with a dot or a space')
  return value
}
