// Writes the lines of several processes to one output without tearing them.
import type { Writable } from 'node:stream'

/** Linux's PIPE_BUF: a write of at most this size to a pipe is atomic, a larger one may be torn. */
const pipeBufBytes = 4096

/** @returns a writer of lines, each with its line break; a line longer than `pipeBufBytes` is written alone */
export function createWholeLineWriter(output: Writable): { write(lines: Buffer): void } {
  let queue: Buffer[] = []
  let isFull = false

  // Never writes a piece behind one that is still buffered: the stream would write the two together.
  function send(): void {
    const pieces = queue
    queue = []
    while (!isFull) {
      const piece = pieces.shift()
      if (piece === undefined) break
      output.write(piece, onWritten)
      isFull = output.writableLength > 0
    }
    queue = [...pieces, ...queue]
  }

  function onWritten(): void {
    if (!isFull || output.writableLength > 0) return
    isFull = false
    send()
  }

  return {
    write(lines) {
      queue.push(...splitAtLineEnds(lines))
      if (!isFull) send()
    },
  }
}

function splitAtLineEnds(lines: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let from = 0; from < lines.length; ) {
    const last =
      lines.length - from <= pipeBufBytes
        ? lines.length - 1
        : lines.lastIndexOf(lineBreak, from + pipeBufBytes - 1)
    const to = (last < from ? endOfLine(lines, from) : last) + 1
    pieces.push(lines.subarray(from, to))
    from = to
  }
  return pieces
}

function endOfLine(lines: Buffer, from: number): number {
  const end = lines.indexOf(lineBreak, from)
  return end === -1 ? lines.length - 1 : end
}

const lineBreak = 0x0a
