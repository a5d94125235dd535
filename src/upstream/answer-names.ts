// The names of an upstream's fields, which are the same in nearly all of its answers: each is made a string once.

export interface AnswerName {
  /** As it was sent. */
  readonly name: string
  readonly lower: string
  /** Hop by hop (RFC 9110 §7.6.1), or the gateway's alone to set: a client tells our refusals by `X-Peage-Error`. */
  readonly isDropped: boolean
}

interface Known extends AnswerName {
  readonly bytes: Buffer
}

/** Each name has one place, by its bytes, and the last that came has it: nothing that an upstream sends stays for ever. */
const known: (Known | undefined)[] = new Array(256).fill(undefined)

/** Bytes; no name in use is longer. */
const longest = 64

/** @param bytes a field's name as undici gives it */
export function readAnswerName(bytes: Buffer): AnswerName {
  if (bytes.length > longest) return describeAnswerName(bytes.toString('latin1'))
  const place = placeOf(bytes)
  const found = known[place]
  if (found !== undefined && isSame(found.bytes, bytes)) return found
  // A copy: its own would keep all that was read with it.
  const made = { ...describeAnswerName(bytes.toString('latin1')), bytes: Buffer.from(bytes) }
  known[place] = made
  return made
}

export function describeAnswerName(name: string): AnswerName {
  const lower = name.toLowerCase()
  return { name, lower, isDropped: dropped.has(lower) || lower.startsWith('proxy-') }
}

function placeOf(bytes: Buffer): number {
  let sum = bytes.length
  for (let i = 0; i < bytes.length; i += 1) sum = (sum * 31 + (bytes[i] as number)) & 0xffff
  return (sum ^ (sum >> 8)) & 0xff
}

function isSame(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i += 1) if (one[i] !== other[i]) return false
  return true
}

const dropped = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-peage-error',
])
