// Generates pseudo-random bytes on demand. The bytes are the same in each run.
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'

export const MiB = 1024 * 1024

const block = 65_536

/** @param onTaken a function that is called with the number of bytes that the stream has produced so far */
export function noise(bytes: number, onTaken: (written: number) => void = () => {}): Readable {
  const seed = createHash('sha512').update('péage').digest()
  const chunk = Buffer.alloc(block, seed)
  let at = 0
  return new Readable({
    highWaterMark: block,
    read() {
      if (at >= bytes) {
        this.push(null)
        return
      }
      const size = Math.min(block, bytes - at)
      chunk.writeDoubleLE(at, 0)
      at += size
      onTaken(at)
      this.push(Buffer.from(chunk.subarray(0, size)))
    },
  })
}

export interface Digest {
  readonly sha256: string
  readonly bytes: number
}

export async function digest(stream: AsyncIterable<Buffer>): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of stream) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { sha256: hash.digest('hex'), bytes }
}
