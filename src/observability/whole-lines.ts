// Lines of several processes on one output, none of which is torn by another's.
import type { Writable } from 'node:stream'

/** Bytes that the kernel takes as one where the output is a pipe: PIPE_BUF of Linux. More may be torn. */
const pipeBufBytes = 4096

/** @returns takes lines, each with its line break; a line that is longer than `most` goes alone */
export function createWholeLineWriter(output: Writable): { write(lines: Buffer): void } {
  let queue: Buffer[] = []
  let isFull = false

  // Never a second piece behind one that waits: those would leave together.
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

/** At ends of lines. */
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
