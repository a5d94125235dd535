// Reads the configuration, and the files that it names. A size limit, and for pipes a time limit, protect the process.
import { closeSync, constants, openSync, readSync, statSync } from 'node:fs'

/** Size limit of the configuration, of a file of test cases, and of each certificate file. */
export const maxFileBytes = 4 * 1024 * 1024
/** Size limit of a file that `${file:PATH}` or `auth.keys` references, and of a mail template. */
export const maxValueBytes = 64 * 1024

/** @throws FileRefused if the gateway refuses to read the file; otherwise the system error that prevented the read */
export type ReadFile = (path: string, maxBytes: number) => string

/**
 * The codes of system errors whose cause is not the file itself. The process or the machine has no free resources, or
 * the disk or the file server has failed.
 */
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

/** @returns the error code if the cause is not the file itself (a later read may succeed), otherwise undefined */
export function machineFailure(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = codeOf(error)
  return code !== undefined && machineCodes.has(code) ? code : machineFailure(error.cause)
}

function codeOf({ code, message }: NodeJS.ErrnoException): string | undefined {
  // If a thread could not start, the system's error code is only in Node's message: `Worker initialization failure:
  // EMFILE`.
  return code === 'ERR_WORKER_INIT_FAILED' ? message.slice(message.lastIndexOf(' ') + 1) : code
}

/**
 * Wraps `readFile`. Passes each machine failure to `onFailure`, so that the caller does not mistake it for an error in
 * a file.
 */
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

/**
 * The error for a file that exists but that the gateway refuses to read. Callers show the message in parentheses after
 * the file name.
 */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
}

/** Reads like `readLimitedBytes`, but returns text. Invalid UTF-8 becomes U+FFFD. */
export function readLimited(path: string, maxBytes: number, maxWaitMs?: number): string {
  return readLimitedBytes(path, maxBytes, maxWaitMs).toString('utf8')
}

/**
 * Reads a file or a pipe to its end.
 * @param maxWaitMs the time limit for a pipe; if it is missing, the read waits without a limit, as `cat` does
 * @throws FileRefused if the file is too large, is neither file nor pipe, or is a pipe that does not end in time
 */
export function readLimitedBytes(path: string, maxBytes: number, maxWaitMs?: number): Buffer {
  const found = statSync(path)
  if (found.isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
  // A device is not even opened, because that may block, rewind a tape, or acquire a terminal.
  if (!found.isFile() && !found.isFIFO()) throw new FileRefused(notReadable)
  // With O_NONBLOCK, a pipe without a writer does not block the process that serves requests.
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

/**
 * Returns a function that reads a non-blocking pipe. Until the time `late`, the function waits for a writer and for its
 * data.
 */
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
      if (performance.now() > late) throw new FileRefused('a pipe that did not end in time')
      Atomics.wait(asleep, 0, 0, 10)
    }
  }
}

export const notReadable = 'neither a regular file nor a pipe'

export function tooLarge(bytes: number): string {
  const size = bytes % (1024 * 1024) === 0 ? `${bytes / 1024 / 1024} MiB` : `${bytes / 1024} KiB`
  return `larger than ${size}`
}

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
 * Wraps `readFile`, and refuses files that are not UTF-8. All invalid bytes decode to U+FFFD, so a random binary secret
 * would silently lose most of its strength.
 * @throws the error of `readFile`, or an error with the code `NOT_UTF8`
 */
export function inUtf8(readFile: ReadFile): ReadFile {
  return (path, maxBytes) => {
    const text = readFile(path, maxBytes)
    if (text.includes('\uFFFD')) throw Object.assign(new Error('not UTF-8'), { code: 'NOT_UTF8' })
    return text
  }
}

/** Explains why a file cannot be read. The system's own message is not used, because it repeats the path. */
export function readErrorReason(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  const reasons: Record<string, string> = {
    ENOENT: 'no such file',
    EISDIR: 'a directory, not a file',
    EACCES: 'permission denied',
    NOT_UTF8: 'not UTF-8 text',
  }
  return reasons[code] ?? code
}
