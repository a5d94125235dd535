// Tracks the boundaries of WebSocket frames (RFC 6455 §5.2). Parses the headers, and only counts the bytes of payloads.
import { randomBytes } from 'node:crypto'

/**
 * Tracks the bytes of one direction. Stores only numbers to save memory, because every open WebSocket has two trackers.
 */
export class FrameTracker {
  /** How many bytes of the current header have arrived. */
  #headerLength = 0
  /** The length of the current header in bytes. It is 2 until the second byte shows the real length. */
  #headerBytes = 2
  #extendedBytes = 0
  /** A JavaScript number can count more bytes than any connection will send. */
  #payloadLength = 0
  #payloadBytesLeft = 0
  #isClose = false
  #hasClosed = false

  /** Returns whether another frame may begin here. */
  isAtBoundary(): boolean {
    return this.#headerLength === 0 && this.#payloadBytesLeft === 0
  }

  /** Returns whether a Close frame was sent. No other frame is allowed after it (RFC 6455 §5.5.1). */
  hasClosed(): boolean {
    return this.#hasClosed
  }

  /**
   * Processes the next bytes, in order.
   * @param untilBoundary whether to stop at the end of the current frame
   * @returns the number of processed bytes
   */
  follow(chunk: Buffer, untilBoundary: boolean): number {
    let offset = 0
    while (offset < chunk.length) {
      if (untilBoundary && this.isAtBoundary()) break
      if (this.#payloadBytesLeft > 0) {
        const skipped = Math.min(this.#payloadBytesLeft, chunk.length - offset)
        this.#payloadBytesLeft -= skipped
        offset += skipped
      } else {
        this.#readHeaderByte(chunk[offset] as number)
        offset += 1
      }
    }
    return offset
  }

  /** Reads one byte of a header. The payload begins after the last byte of the header. */
  #readHeaderByte(byte: number): void {
    const at = this.#headerLength++
    if (at === 0) {
      this.#isClose = (byte & 0x0f) === closeOpcode
      this.#headerBytes = 2
    } else if (at === 1) {
      const length = byte & 0x7f
      this.#extendedBytes = length === 126 ? 2 : length === 127 ? 8 : 0
      this.#payloadLength = this.#extendedBytes === 0 ? length : 0
      this.#headerBytes = 2 + this.#extendedBytes + ((byte & 0x80) === 0 ? 0 : maskBytes)
    } else if (at < 2 + this.#extendedBytes) this.#payloadLength = this.#payloadLength * 256 + byte
    if (this.#headerLength < this.#headerBytes) return
    this.#hasClosed ||= this.#isClose
    this.#payloadBytesLeft = this.#payloadLength
    this.#headerLength = 0
  }
}

/**
 * Returns a Close frame without a reason.
 * @param code the status code (RFC 6455 §7.4.1)
 * @param isMasked whether to mask the frame; required for frames of a client (RFC 6455 §5.3)
 */
export function closeFrame(code: number, isMasked: boolean): Buffer {
  const payload = Buffer.from([code >> 8, code & 0xff])
  if (!isMasked) return Buffer.concat([Buffer.from([0x80 | closeOpcode, payload.length]), payload])
  const mask = randomBytes(4)
  const masked = payload.map((byte, index) => byte ^ (mask[index] as number))
  return Buffer.concat([Buffer.from([0x80 | closeOpcode, 0x80 | payload.length]), mask, masked])
}

const closeOpcode = 0x8

const maskBytes = 4
