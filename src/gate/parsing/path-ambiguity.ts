// What a path could mean to servers that decode it again, cut parameters or trim dots (CONTRACT §6, `allow_in_path`).

/** Parts of a path that servers interpret differently, as bit flags. */
export const ambiguity = { encoded_slash: 1, semicolon: 2, trailing_dot: 4, double_encoding: 8 } as const

type Allowance = keyof typeof ambiguity | 'double_slash'

export function toFlags(allowed: readonly Allowance[]): number {
  // Duplicate slashes are never refused: they are merged, or forwarded unchanged.
  return allowed.reduce((bits, name) => (name === 'double_slash' ? bits : bits | ambiguity[name]), 0)
}

/**
 * The ambiguities that a route must allow for a segment; 0 if there are none.
 * @param segment decoded once
 * @returns `undefined` if no route can allow it: some interpretation has a dot segment, or a control character
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
 * The segments that laxer servers would see in a path, one interpretation for each time they might decode it.
 * @param segments decoded once and folded, without a dot segment in any interpretation
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
// No allowance covers these.
const alwaysRefused = /[\\#?\p{Cc}]| $/u
const escaped = /%[0-9a-f]{2}/i
/** `..`, `..;x`, `x/..`, and `...`, which a server that trims dots would reduce to nothing. */
const dotSegment = /(?:^|[/\\])\s*\.[.\s]*(?:$|[/\\;?#])/
/** No legitimate path is encoded more often, and each layer costs a pass over the whole path. */
const maxDecodings = 4

/** Decodes escapes and leaves a stray `%`. Undefined if that gives invalid UTF-8 or a control character. */
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

/** Removes white space and trailing dots, without a pattern: that would start over at each of a thousand dots. */
function trimmed(segment: string): string {
  let end = segment.length
  while (end > 0 && (segment[end - 1] === '.' || segment[end - 1]?.trim() === '')) end--
  return segment.slice(0, end).trimStart()
}
