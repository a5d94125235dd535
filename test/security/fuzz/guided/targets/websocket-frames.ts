// The relay finds the end of each WebSocket frame, even if the bytes arrive in pieces. If it must stop at the end of a
// frame, it never reads further.
import { FrameTracker } from '../../../../../src/http/websocket-frames.ts'
import { bytesOf, promise, type Target } from '../target.ts'

const frames = [
  '\x81\x02hi',
  '\x88\x80abcd',
  '\x02\xfe\x01\x00abcd',
  '\x89\x00',
  '\x80\x7f\0\0\0\0\0\0\0\x03xyz',
  '\x88\x02\x03\xe8',
]

export const webSocketFrames: Target = {
  // The first byte of an input determines the size of the pieces.
  seeds: frames.flatMap(frame => [`\0${frame}`, `\x01${frame}${frame}`, `\x03${frames.join('')}`]),
  dictionary: [
    ...frames,
    '\x7f',
    '\xff',
    '\x7e',
    '\xfe',
    '\0\0\0\0',
    '\0\0\0\0\0\0\x01\0',
    '\x1f\xff\xff\xff\xff\xff\xff\xff',
  ],
  maxLength: 600,
  maxMs: 50,
  covers: /\/src\/http\/websocket-frames/,
  run(input) {
    const bytes = bytesOf(input)
    const stream = bytes.subarray(1)
    const { boundaries, closedAt, isWhole } = read(stream)
    const size = ((bytes[0] ?? 0) & 0x0f) + 1
    const tracker = new FrameTracker()
    for (let at = 0; at < stream.length; at += size) {
      const piece = stream.subarray(at, at + size)
      promise(tracker.follow(piece, false) === piece.length, 'does not accept all bytes of a piece', at)
      const end = at + piece.length
      promise(tracker.isAtBoundary() === boundaries.has(end), 'is wrong about whether a frame ends here', end)
      promise(
        tracker.hasClosed() === closedAt <= end,
        'is wrong about whether a Close frame has begun',
        end,
        closedAt,
      )
    }
    // Before the gateway sends a Close frame, the relay must stop exactly at the end of the current frame.
    const from = stream.length === 0 ? 0 : (bytes[0] as number) % stream.length
    const closing = new FrameTracker()
    closing.follow(stream.subarray(0, from), false)
    const boundary = [...boundaries].find(offset => offset >= from) ?? stream.length
    let at = from
    while (at < stream.length) {
      const piece = stream.subarray(at, at + size)
      const followed = closing.follow(piece, true)
      promise(
        followed <= piece.length && at + followed <= boundary,
        'reads past the end of a frame',
        at,
        followed,
        boundary,
      )
      at += followed
      if (followed < piece.length) break
    }
    promise(at === boundary, 'stops before the end of the frame', at, boundary)
    return `${Math.min(boundaries.size - 1, 3)} frames${closedAt <= stream.length ? ', closed' : ''}${isWhole ? '' : ', one open'}`
  },
}

/** Parses the whole stream at once (RFC 6455 §5.2), for comparison with the relay. */
function read(stream: Buffer): { boundaries: Set<number>; closedAt: number; isWhole: boolean } {
  const boundaries = new Set([0])
  let closedAt = Number.POSITIVE_INFINITY
  let at = 0n
  while (at + 2n <= BigInt(stream.length)) {
    const start = Number(at)
    const short = stream.readUInt8(start + 1) & 0x7f
    const extended = short === 126 ? 2 : short === 127 ? 8 : 0
    const header = 2 + extended + (stream.readUInt8(start + 1) >> 7) * 4
    if (start + header > stream.length) break
    if ((stream.readUInt8(start) & 0x0f) === 8) closedAt = Math.min(closedAt, start + header)
    const length =
      extended === 8
        ? stream.readBigUInt64BE(start + 2)
        : extended === 2
          ? BigInt(stream.readUInt16BE(start + 2))
          : BigInt(short)
    at += BigInt(header) + length
    if (at <= BigInt(stream.length)) boundaries.add(Number(at))
  }
  return { boundaries, closedAt, isWhole: at === BigInt(stream.length) }
}
