// Where the log's lines leave together: a write of its own would cost each request a tenth of its time.

interface Output {
  write(lines: Buffer): unknown
}

export interface LogBuffer {
  /** @param line with its line break */
  write(line: string): void
  /** Writes what is left; to be called as the process exits. */
  flush(): void
}

/** Milliseconds for which a line may wait: what a killed process has not said of its last moment. */
const maxWaitMs = 20

/** Bytes that wait at most. */
const maxBufferBytes = 64 * 1024

/**
 * Lines wait as bytes: as the strings that they were put together from they would be alive, all pieces of them, to be
 * copied whenever garbage is collected. That was 3 % of what a request costs.
 */
export function createLogBuffer(output: Output): LogBuffer {
  const buffer = Buffer.allocUnsafe(maxBufferBytes)
  let bufferedBytes = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (bufferedBytes === 0) return
    // A copy: who takes it may not be done with it when the next line comes.
    const batch = Buffer.from(buffer.subarray(0, bufferedBytes))
    bufferedBytes = 0
    output.write(batch)
  }
  return {
    write(line) {
      // A UTF-16 unit is three bytes of UTF-8 at most.
      const maxLineBytes = line.length * 3
      if (maxLineBytes > maxBufferBytes - bufferedBytes) flush()
      if (maxLineBytes > maxBufferBytes) output.write(Buffer.from(line))
      else {
        bufferedBytes += buffer.write(line, bufferedBytes)
        timer ??= setTimeout(flush, maxWaitMs)
      }
    },
    flush,
  }
}
