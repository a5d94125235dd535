// Reads the files that a configuration is made of: whole, up to a limit, and none that has no end.
import { closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/** Bytes that the configuration, a file of cases, and each file of certificates may have. */
export const maxFileBytes = 4 * 1024 * 1024
/** Bytes that what `${file:PATH}` names may have. */
export const maxValueBytes = 64 * 1024

/** @throws whatever keeps the file from being read; FileRefused where it is not to be */
export type ReadFile = (path: string, maxBytes: number) => string

/** A file that there is, and that is not read; the message follows its name in parentheses. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
}

/** What `readLimitedBytes` gives, as text; bytes that are not UTF-8 become U+FFFD. */
export function readLimited(path: string, maxBytes: number, maxWaitMs?: number): string {
  return readLimitedBytes(path, maxBytes, maxWaitMs).toString('utf8')
}

/**
 * A regular file's bytes, or a pipe's up to its end.
 * @param maxWaitMs how long a pipe may take; without it as long as it does, as `cat` would wait
 * @throws FileRefused where there is more of it, it is something else, or the pipe does not end in time
 */
export function readLimitedBytes(path: string, maxBytes: number, maxWaitMs?: number): Buffer {
  const found = statSync(path)
  if (found.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  // No device is even opened: to open one may wait, rewind a tape, or take a terminal.
  if (!found.isFile() && !found.isFIFO()) throw new FileRefused(notReadable)
  // Opened without waiting, a pipe that nothing writes to does not hold up the process that serves.
  const mayWait = found.isFIFO() && maxWaitMs === undefined
  const file = openSync(path, mayWait ? constants.O_RDONLY : constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const read = mayWait || found.isFile() ? readSync : readingUntil(performance.now() + (maxWaitMs ?? 0))
    return readToEnd(file, maxBytes, read)
  } finally {
    closeSync(file)
  }
}

type Read = (file: number, into: Uint8Array) => number

function readToEnd(file: number, maxBytes: number, read: Read): Buffer {
  const chunks: Buffer[] = []
  let length = 0
  for (;;) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, maxBytes + 1 - length))
    const count = read(file, chunk)
    if (count === 0) return Buffer.concat(chunks, length)
    chunks.push(chunk.subarray(0, count))
    length += count
    if (length > maxBytes) throw new FileRefused(tooLarge(maxBytes))
  }
}

const chunkBytes = 64 * 1024

/** Reads a pipe that was opened without waiting: it may have no writer yet, or one with nothing to say yet. */
function readingUntil(late: number): Read {
  const asleep = new Int32Array(new SharedArrayBuffer(4))
  let hasBegun = false
  return (file, into) => {
    for (;;) {
      try {
        const count = readSync(file, into)
        hasBegun ||= count > 0
        if (count > 0 || hasBegun) return count
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      }
      if (performance.now() > late) throw new FileRefused('a pipe that does not end')
      Atomics.wait(asleep, 0, 0, 10)
    }
  }
}

export const notReadable = 'neither a regular file nor a pipe'

export function tooLarge(bytes: number): string {
  const size = bytes % (1024 * 1024) === 0 ? `${bytes / 1024 / 1024} MiB` : `${bytes / 1024} KiB`
  return `larger than ${size}`
}
