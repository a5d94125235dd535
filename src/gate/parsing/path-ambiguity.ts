// Finds how other servers could interpret a path. Some servers decode a path again, cut parameters, or remove trailing
// dots. See docs/security-model.md#paths.

/** Bit flags for the parts of a path that servers interpret differently. */
export const ambiguity = { encoded_slash: 1, semicolon: 2, trailing_dot: 4, double_encoding: 8 } as const

type Allowance = keyof typeof ambiguity | 'double_slash'

export function toFlags(allowed: readonly Allowance[]): number {
  // Double slashes have no flag, because no route refuses them. The route decides whether they are merged or forwarded
  // unchanged.
  return allowed.reduce((bits, name) => (name === 'double_slash' ? bits : bits | ambiguity[name]), 0)
}

/**
 * Returns the ambiguities of a segment as flags; 0 if there is no ambiguity. A route accepts the segment only if the
 * route allows all of them. Returns `undefined` if no route can allow the segment, for example because a server could
 * read a dot segment or a control character in it.
 * @param segment the segment, decoded once
 */
export function ambiguitiesOf(segment: string): number | undefined {
  if (!mayBeAmbiguous.test(segment)) return 0
  if (alwaysRefused.test(segment)) return undefined
  for (let text: string | undefined = segment, layers = 0; ; layers++) {
    if (dotSegment.test(text) || layers > maxDecodings) return undefined
    const next = decodeAgain(text)
    if (next === undefined) return undefined
    if (next === text) break
    text = next
  }
  let flags = 0
  if (segment.includes('/')) flags |= ambiguity.encoded_slash
  if (segment.includes(';')) flags |= ambiguity.semicolon
  if (segment.endsWith('.')) flags |= ambiguity.trailing_dot
  if (escaped.test(segment)) flags |= ambiguity.double_encoding
  return flags
}

/**
 * Returns the lists of segments that more lenient servers could read from a path. The first list is for `segments`
 * unchanged. Each further list is the result of decoding the path once more. If the decoded path contains `?` or `#`,
 * there is also a list for the part before this character.
 * @param segments the segments, decoded once and in lower case. The caller has checked that no interpretation of them
 *   contains a dot segment.
 */
export function laxInterpretations(segments: readonly string[]): string[][] {
  const readings: string[][] = []
  let text: string | undefined = segments.join('/')
  for (let before: string | undefined; text !== undefined && text !== before; text = decodeAgain(text)) {
    before = text
    readings.push(segmentsAsLaxServer(text))
    const end = text.search(/[?#]/)
    if (end !== -1) readings.push(segmentsAsLaxServer(text.slice(0, end)))
  }
  return readings
}

const mayBeAmbiguous = /[/\\;#?\p{Cc}]|%[0-9a-f]{2}|[. ]$/iu
// Characters that no value of `allow_in_path` allows.
const alwaysRefused = /[\\#?\p{Cc}]| $/u
const escaped = /%[0-9a-f]{2}/i
/**
 * Matches a text with a dot segment, for example `..`, `..;x` and `x/..`. Also matches `...`, because a server that
 * removes trailing dots would read it as an empty segment.
 */
const dotSegment = /(?:^|[/\\])\s*\.[.\s]*(?:$|[/\\;?#])/
/**
 * The maximum number of additional decodings. No legitimate path needs more, and each decoding is another pass over the
 * path.
 */
const maxDecodings = 4

/**
 * Decodes a text once more. A `%` that does not begin an escape stays unchanged. Returns undefined if the result is
 * invalid UTF-8 or has a control character.
 */
function decodeAgain(text: string): string | undefined {
  if (!escaped.test(text)) return text
  try {
    const decoded = text.replace(/(?:%[0-9a-f]{2})+/gi, decodeURIComponent)
    return /\p{Cc}/u.test(decoded) ? undefined : decoded
  } catch {
    return undefined
  }
}

function segmentsAsLaxServer(text: string): string[] {
  return text
    .split(/[/\\]/)
    .map(segment => trimmed(segment.split(';', 1)[0] as string).toLowerCase())
    .filter(segment => segment !== '')
}

/** Removes white space at both ends and trailing dots. A regular expression would take quadratic time for many dots. */
function trimmed(segment: string): string {
  let end = segment.length
  while (end > 0 && (segment[end - 1] === '.' || segment[end - 1]?.trim() === '')) end--
  return segment.slice(0, end).trimStart()
}
