// Reads the files that make up a configuration: whole, up to a size limit, and never one without an end.
import { closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/** Limit of the configuration, a file of cases, and each certificate file. */
export const maxFileBytes = 4 * 1024 * 1024
/** Limit of a file that `${file:PATH}` or `auth.keys` names. */
export const maxValueBytes = 64 * 1024

/** @throws the error that keeps the file from being read; FileRefused if it may not be read */
export type ReadFile = (path: string, maxBytes: number) => string

/** Errors of a process or a machine that is out of something, or of a disk or a server behind the file. */
const machineCodes = new Set([
  'EAGAIN',
  'EBUSY',
  'EINTR',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'ESTALE',
  'ETIMEDOUT',
])

/**
 * Such an error says nothing about the file: a later read may succeed.
 * @returns the code of the error or of its cause; undefined for any other error
 */
export function machineFailure(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = codeOf(error)
  return code !== undefined && machineCodes.has(code) ? code : machineFailure(error.cause)
}

function codeOf({ code, message }: NodeJS.ErrnoException): string | undefined {
  // Node gives only the message of a thread that could not start: `Worker initialization failure: EMFILE`.
  return code === 'ERR_WORKER_INIT_FAILED' ? message.slice(message.lastIndexOf(' ') + 1) : code
}

/** Reports machine failures, which a reader of several files would list among the faults of the files. */
export function reportingFailures(readFile: ReadFile, onFailure: (error: unknown) => void): ReadFile {
  return (path, maxBytes) => {
    try {
      return readFile(path, maxBytes)
    } catch (error) {
      if (machineFailure(error) !== undefined) onFailure(error)
      throw error
    }
  }
}

/** An existing file that is not read; the message follows its name in parentheses. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
}

/** `readLimitedBytes` as text; bytes that are not UTF-8 become U+FFFD. */
export function readLimited(path: string, maxBytes: number, maxWaitMs?: number): string {
  return readLimitedBytes(path, maxBytes, maxWaitMs).toString('utf8')
}

/**
 * The bytes of a regular file, or of a pipe up to its end.
 * @param maxWaitMs how long a pipe may take; without it, as long as it needs, as with `cat`
 * @throws FileRefused if it is too large, is neither file nor pipe, or is a pipe that does not end in time
 */
export function readLimitedBytes(path: string, maxBytes: number, maxWaitMs?: number): Buffer {
  const found = statSync(path)
  if (found.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  // A device is not even opened: that may block, rewind a tape, or acquire a terminal.
  if (!found.isFile() && !found.isFIFO()) throw new FileRefused(notReadable)
  // Opened non-blocking, a pipe without a writer does not block the process that serves.
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

/** Reads a non-blocking pipe: it may have no writer yet, or one that has not written yet. */
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

/** The text of a file, or in words why it cannot be read. */
export function tryRead(
  path: string,
  maxBytes: number,
  readFile: ReadFile,
): { text: string; error?: undefined } | { text?: undefined; error: string } {
  try {
    return { text: readFile(path, maxBytes) }
  } catch (thrown) {
    return { error: `cannot read the file ${JSON.stringify(path)} (${readErrorReason(thrown)})` }
  }
}

/**
 * Reads text only. Bytes that are not UTF-8 all decode to U+FFFD: a random binary secret would lose most of its
 * strength unnoticed.
 * @throws the error that kept the file from being read, or one with the code `NOT_UTF8`
 */
export function inUtf8(readFile: ReadFile): ReadFile {
  return (path, maxBytes) => {
    const text = readFile(path, maxBytes)
    if (text.includes('\uFFFD')) throw Object.assign(new Error('not UTF-8'), { code: 'NOT_UTF8' })
    return text
  }
}

/** Why a file cannot be read; the system's own message would repeat the path. */
export function readErrorReason(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  const reasons: Record<string, string> = {
    ENOENT: 'no such file',
    EISDIR: 'a folder',
    EACCES: 'not permitted',
    NOT_UTF8: 'not UTF-8 text',
  }
  return reasons[code] ?? code
}
