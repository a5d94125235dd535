// Cuts bytes into pieces, so that tests can interrupt a parser at any place.
import fc from 'fast-check'
import type { RawConnection } from '../security/raw-client.ts'

/** Generates sizes for the pieces. If bytes are left after these pieces, they form one last piece. */
export const sizes = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 16 }) }, fc.integer({ min: 17, max: 400 })),
  { maxLength: 30 },
)

export function* cut(bytes: Buffer, pieces: readonly number[]): Generator<Buffer> {
  let at = 0
  for (const size of pieces) {
    if (at >= bytes.length) return
    yield bytes.subarray(at, at + size)
    at += size
  }
  if (at < bytes.length) yield bytes.subarray(at)
}

/** Sends bytes in pieces, and lets the server read each piece before it sends the next. */
export async function writePieces(connection: RawConnection, bytes: Buffer, pieces: readonly number[]) {
  connection.socket.setNoDelay(true)
  for (const piece of cut(bytes, pieces)) {
    connection.write(piece)
    await turns(1)
  }
}

/** Waits for `count` turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise<void>(resolve => setImmediate(resolve))
}
