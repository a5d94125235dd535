// Writes the log of a process to standard output, in batches. If other processes share the output, each write contains
// only whole lines.
import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../config/sections/schema.ts'
import { createLogger } from './logger.ts'

interface LogOptions {
  /** Whether other processes write to the same output. */
  isShared: boolean
  /** The process ID of the worker. Every line contains it, except the lines of the access log. */
  worker?: number
}

/** Call this once per process. */
export async function openLog(
  stdout: Writable & { isTTY?: boolean },
  settings: Config['server']['log'],
  { isShared, worker }: LogOptions,
): Promise<Logger> {
  const buffer = createLogBuffer(isShared ? createWholeLineWriter(stdout) : stdout, lines =>
    log.warn({ lines }, 'log lines lost'),
  )
  process.once('exit', buffer.flush)
  // The reader of the log may close the pipe. The gateway must then continue.
  stdout.on('error', () => {})
  const output = stdout.isTTY ? stdout : buffer
  const log = await createLogger(settings, output, worker === undefined ? null : { worker })
  return log
}

interface ByteOutput {
  write(lines: Buffer): unknown
  /** The number of bytes that wait to be written. */
  readonly writableLength: number
}

interface LogBuffer {
  /** @param line including its line break */
  write(line: string): void
  /** Writes the buffered lines. Call it when the process exits. */
  flush(): void
}

/**
 * The maximum time that a line waits in the buffer. If the process is killed, the waiting lines are lost. The time is
 * not shorter, because each write delays requests. In a measurement with 20 ms and few requests, 1 % of the requests
 * were delayed, and the p99 was a seventh longer.
 */
const maxWaitMs = 100

const maxBufferBytes = 64 * 1024

/**
 * The limit for lines that wait for a slow reader. If more lines wait, new lines are dropped, so that they do not fill
 * the memory.
 */
const maxWaitingBytes = 32 * 1024 * 1024

/**
 * Writes lines in batches, because one write per line would take a tenth of the time of each request. The buffer
 * contains bytes, not strings. A concatenated string keeps all its pieces in memory, and every garbage collection would
 * copy these pieces. The copying was 3 % of the cost of a request.
 * @param onLost called with the number of dropped lines, when the reader has reduced the waiting bytes to half of the
 *   limit
 */
function createLogBuffer(output: ByteOutput, onLost: (lines: number) => void): LogBuffer {
  const buffer = Buffer.allocUnsafe(maxBufferBytes)
  let bufferedBytes = 0
  let timer: NodeJS.Timeout | undefined
  let lostLines = 0
  const send = (batch: Buffer) => {
    if (output.writableLength > (lostLines === 0 ? maxWaitingBytes : maxWaitingBytes / 2)) {
      lostLines += countLines(batch)
      return
    }
    output.write(batch)
    if (lostLines === 0) return
    const lines = lostLines
    lostLines = 0
    // `onLost` may write a line. So it is called later, after the current line has been written.
    queueMicrotask(() => onLost(lines))
  }
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (bufferedBytes === 0) return
    // Copies the bytes, because the output may still use them when the next line overwrites the buffer.
    const batch = Buffer.from(buffer.subarray(0, bufferedBytes))
    bufferedBytes = 0
    send(batch)
  }
  return {
    write(line) {
      // A UTF-16 code unit has at most three bytes in UTF-8.
      const maxLineBytes = line.length * 3
      if (maxLineBytes > maxBufferBytes - bufferedBytes) flush()
      if (maxLineBytes > maxBufferBytes) send(Buffer.from(line))
      else {
        bufferedBytes += buffer.write(line, bufferedBytes)
        timer ??= setTimeout(flush, maxWaitMs)
      }
    },
    flush,
  }
}

/** Linux's PIPE_BUF. A write of at most this size to a pipe is atomic, and a larger write may be split. */
const pipeBufBytes = 4096

/**
 * Creates a writer for an output that several processes share. Each write contains whole lines of up to `pipeBufBytes`
 * in total. A longer line is written separately.
 * @returns the writer, which accepts lines with their line breaks
 */
function createWholeLineWriter(output: Writable): ByteOutput {
  let queue: Buffer[] = []
  let queuedBytes = 0
  let isFull = false

  // Gives the stream one piece at a time. While the stream still buffers a piece, the next piece waits. Otherwise, the
  // stream would combine both pieces into one write.
  function send(): void {
    const pieces = queue
    queue = []
    while (!isFull) {
      const piece = pieces.shift()
      if (piece === undefined) break
      queuedBytes -= piece.length
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
      queuedBytes += lines.length
      if (!isFull) send()
    },
    get writableLength() {
      return queuedBytes + output.writableLength
    },
  }
}

function countLines(lines: Buffer): number {
  let count = 0
  for (let at = lines.indexOf(lineBreak); at !== -1; at = lines.indexOf(lineBreak, at + 1)) count += 1
  return count
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
