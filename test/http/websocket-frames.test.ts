// Tests that the start and the end of WebSocket frames are found, however their bytes are split (RFC 6455 §5.2).
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { closeFrame, FrameTracker } from '../../src/http/websocket-frames.ts'
import { cut } from './pieces.ts'

const seed = 20_261_122
const close = 0x8

interface Frame {
  /** The FIN bit and the three reserved bits. */
  flags: number
  opcode: number
  mask: Buffer | undefined
  payload: Buffer
  /**
   * The minimum number of bytes for the extended length. Peers must use the shortest form of the length, but the
   * tracker must parse the longer forms too.
   */
  lengthBytes: 0 | 2 | 8
}

const bytes = (constraints: fc.IntArrayConstraints) =>
  fc.uint8Array(constraints).map(array => Buffer.from(array))
const payload = fc.oneof(
  { weight: 6, arbitrary: bytes({ maxLength: 20 }) },
  // These are the payload lengths at which the encoding of the length changes. Every byte of these payloads looks like
  // the first byte of a Close frame.
  {
    weight: 1,
    arbitrary: fc.constantFrom(125, 126, 127, 65_535, 65_536).map(length => Buffer.alloc(length, 0x88)),
  },
)
const mask = fc.option(bytes({ minLength: 4, maxLength: 4 }), { nil: undefined })
const lengthBytes = fc.constantFrom<Frame['lengthBytes']>(0, 2, 8)

/** Generates any frame, even with reserved bits and opcodes, because WebSocket extensions may use them. */
const anyFrame: fc.Arbitrary<Frame[]> = fc
  .record({ flags: fc.nat(15), opcode: fc.nat(15), mask, payload, lengthBytes })
  .map(frame => [frame])
const controlFrame: fc.Arbitrary<Frame> = fc.record({
  flags: fc.constant(8),
  opcode: fc.constantFrom(0x9, 0xa),
  mask,
  payload: bytes({ maxLength: 20 }),
  lengthBytes: fc.constant(0),
})
/** Generates a fragmented message, with pings and pongs between the fragments. */
const fragmented: fc.Arbitrary<Frame[]> = fc
  .array(fc.record({ part: payload, control: fc.option(controlFrame), mask, lengthBytes }), { minLength: 1 })
  .map(parts =>
    parts.flatMap(({ part, control, ...rest }, index) => {
      const flags = index === parts.length - 1 ? 8 : 0
      const frame: Frame = { ...rest, flags, opcode: index === 0 ? 1 : 0, payload: part }
      return control === null ? [frame] : [control, frame]
    }),
  )
const frames = fc.array(fc.oneof(anyFrame, fragmented), { minLength: 1, maxLength: 4 }).map(all => all.flat())
/** Generates the sizes of the pieces in which the bytes arrive. */
const cuts = fc.array(fc.oneof(fc.integer({ min: 1, max: 16 }), fc.constant(0), fc.constant(30_000)), {
  maxLength: 30,
})

describe('a tracker of WebSocket frames', () => {
  it('knows after each piece of data whether a frame can begin next, and whether a Close frame was sent', () => {
    fc.assert(
      fc.property(frames, cuts, (sent, sizes) => {
        const { stream, boundaries, closedFrom } = encoded(sent)
        const tracker = new FrameTracker()
        let at = 0
        for (const piece of cut(stream, sizes)) {
          expect(tracker.isAtBoundary()).toBe(boundaries.includes(at))
          expect(tracker.hasClosed()).toBe(at >= closedFrom)
          expect(tracker.follow(piece, false)).toBe(piece.length)
          at += piece.length
        }
        expect(tracker.isAtBoundary()).toBe(true)
        expect(tracker.hasClosed()).toBe(at >= closedFrom)
      }),
      { seed, numRuns: 400 },
    )
  })

  it('can stop at the end of the current frame without consuming the bytes after it', () => {
    fc.assert(
      fc.property(frames, cuts, fc.nat(200_000), (sent, sizes, somewhere) => {
        const { stream, boundaries } = encoded(sent)
        const from = somewhere % (stream.length + 1)
        const boundary = boundaries.find(offset => offset >= from) ?? Number.NaN
        const tracker = new FrameTracker()
        expect(tracker.follow(stream.subarray(0, from), false)).toBe(from)
        let at = from
        for (const piece of cut(stream.subarray(from), sizes)) {
          const followed = tracker.follow(piece, true)
          expect(followed).toBe(Math.min(piece.length, boundary - at))
          at += followed
          if (followed < piece.length) break
        }
        expect(at).toBe(boundary)
        expect(tracker.isAtBoundary()).toBe(true)
      }),
      { seed, numRuns: 400 },
    )
  })

  it('supports payloads whose length does not fit into 32 bits', () => {
    const piece = Buffer.allocUnsafeSlow(2 ** 28)
    const tracker = new FrameTracker()
    tracker.follow(Buffer.from('827f0000000300000005', 'hex'), false)
    for (let count = 0; count < 3 * 16; count += 1) expect(tracker.follow(piece, true)).toBe(piece.length)
    expect(tracker.isAtBoundary()).toBe(false)
    expect(tracker.follow(piece, true)).toBe(5)
  })
})

describe('a Close frame of the gateway', () => {
  it('is one complete frame with the given code, and is masked if the gateway is the client', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1_000, max: 4_999 }), fc.boolean(), (code, isMasked) => {
        const frame = closeFrame(code, isMasked)
        const tracker = new FrameTracker()
        expect(tracker.follow(Buffer.concat([frame, frame]), false)).toBe(frame.length * 2)
        expect(tracker.isAtBoundary() && tracker.hasClosed()).toBe(true)
        const key = isMasked ? frame.subarray(2, 6) : Buffer.alloc(4)
        const unmasked = masked(frame.subarray(isMasked ? 6 : 2), key)
        const text = [frame.subarray(0, 2), unmasked].map(part => part.toString('hex')).join(' ')
        expect(text).toBe(`88${isMasked ? '82' : '02'} ${code.toString(16).padStart(4, '0')}`)
      }),
      { seed },
    )
  })
})

/** @returns the bytes, the offsets at which a frame may begin, and the offset of the first Close frame's payload */
function encoded(sent: readonly Frame[]) {
  const parts: Buffer[] = []
  const boundaries = [0]
  let closedFrom = Number.POSITIVE_INFINITY
  let length = 0
  for (const frame of sent) {
    const header = headerOf(frame)
    const body = frame.mask === undefined ? frame.payload : masked(frame.payload, frame.mask)
    if (frame.opcode === close) closedFrom = Math.min(closedFrom, length + header.length)
    parts.push(header, body)
    length += header.length + body.length
    boundaries.push(length)
  }
  return { stream: Buffer.concat(parts), boundaries, closedFrom }
}

function headerOf({ flags, opcode, mask, payload: { length }, lengthBytes }: Frame): Buffer {
  const needed = length > 65_535 ? 8 : length > 125 ? 2 : 0
  const extended = Buffer.alloc(Math.max(needed, lengthBytes))
  if (extended.length > 0)
    extended.writeUIntBE(length, Math.max(0, extended.length - 6), extended.length === 2 ? 2 : 6)
  const short = extended.length === 8 ? 127 : extended.length === 2 ? 126 : length
  const first = Buffer.from([(flags << 4) | opcode, (mask === undefined ? 0 : 0x80) | short])
  return Buffer.concat([first, extended, mask ?? Buffer.alloc(0)])
}

function masked(payload: Buffer, key: Buffer): Buffer {
  return Buffer.from(payload.map((byte, index) => byte ^ (key[index % 4] ?? 0)))
}
