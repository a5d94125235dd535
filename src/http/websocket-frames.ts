// Tracks where WebSocket frames begin and end (RFC 6455 §5.2): parses their headers, only counts their payloads.
import { randomBytes } from 'node:crypto'

export interface FrameTracker {
  /** Whether another frame may begin here. */
  isAtBoundary(): boolean
  /** Whether a Close frame has passed: nothing may follow it (RFC 6455 §5.5.1). */
  hasClosed(): boolean
  /**
   * Follows the bytes of one direction, in order.
   * @param untilBoundary stops at the end of the current frame
   * @returns how many bytes were followed
   */
  follow(chunk: Buffer, untilBoundary: boolean): number
}

export function createFrameTracker(): FrameTracker {
  const header = Buffer.alloc(maxFrameHeaderBytes)
  let headerLength = 0
  // A double can count more bytes than any connection will send.
  let payloadBytesLeft = 0
  let hasClosed = false
  const isAtBoundary = () => headerLength === 0 && payloadBytesLeft === 0

  /** Reads one byte of a header; the last one sets `payloadBytesLeft`. */
  function readHeaderByte(byte: number): void {
    header[headerLength++] = byte
    if (headerLength < 2 || headerLength < headerLengthOf(header)) return
    hasClosed ||= ((header[0] as number) & 0x0f) === closeOpcode
    payloadBytesLeft = payloadLengthOf(header)
    headerLength = 0
  }

  return {
    isAtBoundary,
    hasClosed: () => hasClosed,
    follow(chunk, untilBoundary) {
      let offset = 0
      while (offset < chunk.length) {
        if (untilBoundary && isAtBoundary()) break
        if (payloadBytesLeft > 0) {
          const skipped = Math.min(payloadBytesLeft, chunk.length - offset)
          payloadBytesLeft -= skipped
          offset += skipped
        } else {
          readHeaderByte(chunk[offset] as number)
          offset += 1
        }
      }
      return offset
    },
  }
}

/**
 * A Close frame without a reason.
 * @param code RFC 6455 §7.4.1 @param isMasked required of a client's frames (§5.3)
 */
export function closeFrame(code: number, isMasked: boolean): Buffer {
  const payload = Buffer.from([code >> 8, code & 0xff])
  if (!isMasked) return Buffer.concat([Buffer.from([0x80 | closeOpcode, payload.length]), payload])
  const mask = randomBytes(4)
  const masked = payload.map((byte, index) => byte ^ (mask[index] as number))
  return Buffer.concat([Buffer.from([0x80 | closeOpcode, 0x80 | payload.length]), mask, masked])
}

const closeOpcode = 0x8

/** Two bytes, eight of an extended length, four of a mask. */
const maxFrameHeaderBytes = 14

function headerLengthOf(header: Buffer): number {
  const second = header[1] as number
  const length = second & 0x7f
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + ((second & 0x80) === 0 ? 0 : 4)
}

function payloadLengthOf(header: Buffer): number {
  const length = (header[1] as number) & 0x7f
  if (length === 126) return header.readUInt16BE(2)
  return length === 127 ? header.readUInt32BE(2) * 2 ** 32 + header.readUInt32BE(6) : length
}
