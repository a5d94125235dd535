// Where the log's lines leave together: a write of its own would cost each request a tenth of its time.

interface Output {
  write(text: string): unknown
}

export interface LogBatches extends Output {
  /** Writes what is left; to be called as the process exits. */
  flush(): void
}

/** Milliseconds for which a line may wait: what a killed process has not said of its last moment. */
const longest = 20

/** Characters that wait at most. */
const most = 64 * 1024

export function createLogBatches(output: Output): LogBatches {
  let lines: string[] = []
  let length = 0
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (length === 0) return
    const batch = lines.join('')
    lines = []
    length = 0
    output.write(batch)
  }
  return {
    write(line) {
      lines.push(line)
      length += line.length
      if (length >= most) flush()
      else timer ??= setTimeout(flush, longest)
    },
    flush,
  }
}
