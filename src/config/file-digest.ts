// The bytes of the file in short, so that a look says whether they are others: read in parts, as the process serves meanwhile.
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { FileRefused, maxFileBytes, notReadable, tooLarge } from './yaml/read-file.ts'

export function digestOf(chunks: Iterable<Uint8Array>): string {
  const hash = createHash('sha256')
  for (const chunk of chunks) hash.update(chunk)
  return hash.digest('hex')
}

/** Of no file the digest. */
export function unreadable(error: unknown): string {
  if (error instanceof FileRefused) return error.message
  return String((error as NodeJS.ErrnoException).code)
}

/** Looks of one file after each other; nothing of what cannot be read twice. Never rejects. */
export function createLook(path: string): () => Promise<string | undefined> {
  let seen: { identity: string; digest: string } | undefined
  let sameFor = 0

  async function look(file: FileHandle): Promise<string | undefined> {
    const found = await file.stat({ bigint: true })
    if (found.isFIFO()) return undefined
    if (found.isDirectory()) return 'EISDIR'
    if (!found.isFile()) return notReadable
    const { dev, ino, size, mtimeNs, ctimeNs } = found
    const identity = [dev, ino, size, mtimeNs, ctimeNs].join()
    sameFor = identity === seen?.identity ? sameFor + 1 : 0
    if (seen !== undefined && sameFor > trusted && sameFor % anyway !== 0) return seen.digest
    const digest = await readDigest(file)
    seen = { identity, digest }
    return digest
  }

  return async () => {
    try {
      // To open it has a network file system ask its server; without waiting, for a pipe may stand there by now.
      const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
      try {
        return await look(file)
      } finally {
        await file.close()
      }
    } catch (error) {
      return unreadable(error)
    }
  }
}

/** Looks for which a file is read although it seems to be the same: the clock of a file system may be coarse. */
const trusted = 25
/** Of so many looks one reads in any case: some file systems tell no change. */
const anyway = 50

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
