// Defines the records of an import file, and reads its bytes.
import type { Readable } from 'node:stream'

/** The cause and the remedy of an invalid record. The text never contains a value of the file. */
export interface Problem {
  /** The name of the invalid member, or `record` if the problem concerns the whole record. */
  readonly member: string
  readonly text: string
}

/** One user of the file, not yet checked. */
export type FileRecord = { /** The first line of the record. */ readonly line: number } & (
  | { readonly members: Members }
  | { readonly problem: Problem }
)

export type Members = Readonly<Record<string, unknown>>

/** The error for an invalid CSV header. No record of the file can then be read. */
export class InvalidHeader extends Error {
  override readonly name = 'InvalidHeader'
  readonly line: number
  readonly problem: Problem

  constructor(line: number, problem: Problem) {
    super(problem.text)
    this.line = line
    this.problem = problem
  }
}

/** Reads the bytes of a file as records, in order. The memory use does not depend on the size of the file. */
export type ReadRecords = (chunks: AsyncIterable<Buffer>) => AsyncIterable<FileRecord>

/** The maximum size of a record without its line end, 64 KiB. */
export const maxRecordBytes = 65_536

export const recordProblems = {
  size: recordProblem('The record is larger than 64 KiB. Shorten it, and check that every quote is closed.'),
  encoding: recordProblem('The record is not valid UTF-8. Convert the file to UTF-8.'),
}

export function recordProblem(text: string): Problem {
  return { member: 'record', text }
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @returns undefined if the bytes are not UTF-8 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** Yields the bytes of a stream without the byte order mark at its start. */
export async function* withoutByteOrderMark(stream: Readable): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk)
    if (head === undefined) {
      yield bytes
      continue
    }
    head = Buffer.concat([head, bytes])
    if (head.length < byteOrderMark.length) continue
    yield head.subarray(byteOrderMark.equals(head.subarray(0, 3)) ? 3 : 0)
    head = undefined
  }
  if (head !== undefined) yield head
}
