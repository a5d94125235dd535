// Where the log's lines leave together: a write of its own would cost each request a tenth of its time.

interface Output {
  write(lines: Buffer): unknown
}

export interface LogBatches {
  /** @param line with its line break */
  write(line: string): void
  /** Writes what is left; to be called as the process exits. */
  flush(): void
}

/** Milliseconds for which a line may wait: what a killed process has not said of its last moment. */
const longest = 20

/** Bytes that wait at most. */
const most = 64 * 1024

/**
 * Lines wait as bytes: as the strings that they were put together from they would be alive, all pieces of them, to be
 * copied whenever garbage is collected. That was 3 % of what a request costs.
 */
export function createLogBatches(output: Output): LogBatches {
  const waiting = Buffer.allocUnsafe(most)
  let length = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (length === 0) return
    // A copy: who takes it may not be done with it when the next line comes.
    const batch = Buffer.from(waiting.subarray(0, length))
    length = 0
    output.write(batch)
  }
  return {
    write(line) {
      // A UTF-16 unit is three bytes of UTF-8 at most.
      const atMost = line.length * 3
      if (atMost > most - length) flush()
      if (atMost > most) output.write(Buffer.from(line))
      else {
        length += waiting.write(line, length)
        timer ??= setTimeout(flush, longest)
      }
    },
    flush,
  }
}
