// Writes log lines in batches: a write per line would cost each request a tenth of its time.

interface Output {
  write(lines: Buffer): unknown
}

export interface LogBuffer {
  /** @param line including its line break */
  write(line: string): void
  /** Writes what is buffered; call it when the process exits. */
  flush(): void
}

/** How long a line may wait: a killed process loses the lines of its last moment. */
const maxWaitMs = 20

const maxBufferBytes = 64 * 1024

/**
 * Buffers bytes: a concatenated string would keep all its pieces alive, to be copied at every garbage collection.
 * That was 3 % of a request's cost.
 */
export function createLogBuffer(output: Output): LogBuffer {
  const buffer = Buffer.allocUnsafe(maxBufferBytes)
  let bufferedBytes = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (bufferedBytes === 0) return
    // A copy: the output may not be done with it when the next line comes.
    const batch = Buffer.from(buffer.subarray(0, bufferedBytes))
    bufferedBytes = 0
    output.write(batch)
  }
  return {
    write(line) {
      // A UTF-16 code unit takes at most three bytes of UTF-8.
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
