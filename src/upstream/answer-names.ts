// Interns the header names of upstream responses. They are nearly always the same, so each becomes a string once.

export interface HeaderName {
  /** As received. */
  readonly name: string
  readonly lower: string
  /** Hop-by-hop (RFC 9110 §7.6.1), or the gateway's alone: clients recognise its refusals by `X-Peage-Error`. */
  readonly isDropped: boolean
}

interface InternedName extends HeaderName {
  readonly bytes: Buffer
}

/** A name's bytes choose its slot, and a new name replaces the old one: an upstream cannot fill the memory. */
const internedNames: (InternedName | undefined)[] = new Array(256).fill(undefined)

/** No header name in use is longer. */
const maxInternedBytes = 64

/** @param bytes a header name as undici passes it */
export function internHeaderName(bytes: Buffer): HeaderName {
  if (bytes.length > maxInternedBytes) return describeHeaderName(bytes.toString('latin1'))
  const slot = slotOf(bytes)
  const found = internedNames[slot]
  if (found !== undefined && hasSameBytes(found.bytes, bytes)) return found
  // A copy: the original would keep the whole read buffer alive.
  const interned = { ...describeHeaderName(bytes.toString('latin1')), bytes: Buffer.from(bytes) }
  internedNames[slot] = interned
  return interned
}

export function describeHeaderName(name: string): HeaderName {
  const lower = name.toLowerCase()
  return { name, lower, isDropped: droppedNames.has(lower) || lower.startsWith('proxy-') }
}

function slotOf(bytes: Buffer): number {
  let sum = bytes.length
  for (let i = 0; i < bytes.length; i += 1) sum = (sum * 31 + (bytes[i] as number)) & 0xffff
  return (sum ^ (sum >> 8)) & 0xff
}

function hasSameBytes(one: Buffer, other: Buffer): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i += 1) if (one[i] !== other[i]) return false
  return true
}

const droppedNames = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-peage-error',
])
