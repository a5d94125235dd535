// What a path could mean to servers that decode it again, cut parameters, or trim dots (CONTRACT §6, `allow_in_path`).

/** What a path holds that not every server reads in the same way; a set of bits. */
export const ambiguity = { encoded_slash: 1, semicolon: 2, trailing_dot: 4, double_encoding: 8 } as const

type Allowance = keyof typeof ambiguity | 'double_slash'

export function toFlags(allowed: readonly Allowance[]): number {
  // Duplicate slashes are never refused: they are merged, or sent as they were written.
  return allowed.reduce((bits, name) => (name === 'double_slash' ? bits : bits | ambiguity[name]), 0)
}

/**
 * Which allowances a segment needs, 0 where it is certain.
 * @param segment decoded once
 * @returns nothing where no allowance helps: a dot segment that some reading of it has, or a control character
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
 * The segments that laxer servers would find in a path, one reading for each time they might decode it.
 * @param segments decoded once and folded, without a dot segment in any reading
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
// No allowance speaks of these.
const alwaysRefused = /[\\#?\p{Cc}]| $/u
const escaped = /%[0-9a-f]{2}/i
/** `..`, `..;x`, `x/..`, and `...`, of which a server that trims dots would make nothing. */
const dotSegment = /(?:^|[/\\])\s*\.[.\s]*(?:$|[/\\;?#])/
/** Nobody encodes a path so often in good faith, and each layer is a walk over the whole of it. */
const maxDecodings = 4

/** Decodes what is an escape and leaves a `%` that is none; nothing where that gives no text, or a control character. */
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

/** Less white space, and the dots at its end. (A pattern would try anew at every dot of a thousand.) */
function trimmed(segment: string): string {
  let end = segment.length
  while (end > 0 && (segment[end - 1] === '.' || segment[end - 1]?.trim() === '')) end--
  return segment.slice(0, end).trimStart()
}
