// Reads JSON Lines: one JSON object per line.
import {
  decodeUtf8,
  type FileRecord,
  type Members,
  maxRecordBytes,
  type ReadRecords,
  recordProblem,
  recordProblems,
} from './record.ts'

export const readJsonLines: ReadRecords = async function* (chunks) {
  let line = 1
  for await (const bytes of splitLines(chunks)) {
    const record = readLine(line, bytes)
    if (record !== undefined) yield record
    line += 1
  }
}

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** Yields each line without its line end, or undefined for a line that is too long. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = []
  let size = 0
  const takeLine = () => {
    const bytes = Buffer.concat(parts)
    const isShort = size <= maxRecordBytes + 1
    parts = []
    size = 0
    const line = bytes.at(-1) === carriageReturn ? bytes.subarray(0, -1) : bytes
    return isShort && line.length <= maxRecordBytes ? line : undefined
  }
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(lineFeed, start)
      const part = chunk.subarray(start, end === -1 ? chunk.length : end)
      size += part.length
      // One byte more than the limit is kept, because it may be the carriage return of the line end.
      if (size <= maxRecordBytes + 1) parts.push(part)
      else parts = []
      if (end === -1) break
      yield takeLine()
      start = end + 1
    }
  }
  if (size > 0) yield takeLine()
}

/** @returns undefined for a blank line */
function readLine(line: number, bytes: Buffer | undefined): FileRecord | undefined {
  if (bytes === undefined) return { line, problem: recordProblems.size }
  const text = decodeUtf8(bytes)
  if (text === undefined) return { line, problem: recordProblems.encoding }
  if (/^[ \t\r]*$/.test(text)) return undefined
  const members = parseObject(text)
  if (members === undefined)
    return { line, problem: recordProblem('The line is not a JSON object. Write one JSON object per line.') }
  if (repeatsMember(text))
    return { line, problem: recordProblem('A member occurs twice in one object. Keep only one of them.') }
  return { line, members }
}

function parseObject(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Members)
      : undefined
  } catch {
    // The parser's message is not used, because it quotes a part of the line, which may be secret.
    return undefined
  }
}

/**
 * Returns whether any object in a valid JSON text has two members with the same name. `JSON.parse` would keep only the
 * last of them. In valid JSON, each string before a colon is a member name of the innermost open object.
 */
function repeatsMember(json: string): boolean {
  const open: Set<string>[] = []
  for (const [token, name] of json.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') open.push(new Set())
    else if (token === '}') open.pop()
    else if (name !== undefined) {
      const names = open.at(-1)
      const decoded: string = JSON.parse(name)
      if (names?.has(decoded)) return true
      names?.add(decoded)
    }
  }
  return false
}
