// Computes digests of the configuration file to detect changes. Reads in chunks to keep the event loop free.
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { FileRefused, machineFailure, maxFileBytes, notReadable, tooLarge } from './read-file.ts'

export function digestOf(chunks: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Returns the text that is used instead of a digest if a file cannot be read. */
export function unreadable(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  return String((error as NodeJS.ErrnoException).code)
}

/**
 * Creates a function that returns the current digest and never rejects. The digest is `undefined` if the file is a
 * pipe, or if the cause of a failed read is not the file itself (`machineFailure`).
 */
export function createDigestPoll(path: string): () => Promise<string | undefined> {
  let seen: { identity: string; digest: string } | undefined
  let sameFor = 0

  async function currentDigest(file: FileHandle): Promise<string | undefined> {
    const found = await file.stat({ bigint: true })
    if (found.isFIFO()) return undefined
    if (found.isDirectory()) return 'EISDIR'
    if (!found.isFile()) return notReadable
    const { dev, ino, size, mtimeNs, ctimeNs } = found
    const identity = [dev, ino, size, mtimeNs, ctimeNs].join()
    sameFor = identity === seen?.identity ? sameFor + 1 : 0
    if (seen !== undefined && sameFor > pollsAlwaysRead && sameFor % pollsPerRead !== 0) return seen.digest
    const digest = await readDigest(file)
    seen = { identity, digest }
    return digest
  }

  return async () => {
    try {
      // Opening the file makes a network file system query its server for changes. With O_NONBLOCK, `open` does not
      // block if the path has become a pipe.
      const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        return await currentDigest(file)
      } finally {
        await file.close()
      }
    } catch (error) {
      return machineFailure(error) === undefined ? unreadable(error) : undefined
    }
  }
}

/**
 * The number of polls after a change that always read the file. These polls do not rely on timestamps, which may be too
 * coarse to show the next change.
 */
const pollsAlwaysRead = 25
/**
 * The interval, in polls, at which a file that seems unchanged is read after those polls. These reads are needed,
 * because some file systems do not report changes.
 */
const pollsPerRead = 50

async function readDigest(file: FileHandle): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(64 * 1024)
  for (let length = 0; length <= maxFileBytes; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, length)
    if (bytesRead === 0) return hash.digest('hex')
    hash.update(buffer.subarray(0, bytesRead))
    length += bytesRead
  }
  return tooLarge(maxFileBytes)
}
