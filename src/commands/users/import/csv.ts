// Reads CSV (RFC 4180) with a header line. The package csv-parse is not used, because it loses the record after an
// invalid quote, and reports an oversized record more than once.
import { columnNames, membersOfCells } from './members.ts'
import {
  decodeUtf8,
  type FileRecord,
  InvalidHeader,
  maxRecordBytes,
  type Problem,
  type ReadRecords,
  recordProblem,
  recordProblems,
} from './record.ts'

export const readCsv: ReadRecords = async function* (chunks) {
  let columns: readonly string[] | undefined
  for await (const row of readRows(chunks)) {
    if (columns === undefined) columns = readHeader(row)
    else yield readRecord(row, columns)
  }
  if (columns === undefined) throw new InvalidHeader(1, missingColumn('email'))
}

type Row = { readonly line: number } & ({ readonly cells: readonly string[] } | { readonly problem: Problem })

/** @throws InvalidHeader */
function readHeader(row: Row): readonly string[] {
  const problem = 'problem' in row ? row.problem : headerProblem(row.cells)
  if (problem !== undefined) throw new InvalidHeader(row.line, problem)
  return 'cells' in row ? row.cells : []
}

/**
 * The problem contains no unknown name from the file. If the header is missing, the first line is the data of a user.
 */
function headerProblem(names: readonly string[]): Problem | undefined {
  const unknown = names.findIndex(name => !columnNames.includes(name))
  if (unknown !== -1) {
    const known = columnNames.join(', ')
    return recordProblem(`Column ${unknown + 1} of the header is unknown. The possible columns are ${known}.`)
  }
  const repeated = names.find((name, n) => names.indexOf(name) !== n)
  if (repeated !== undefined)
    return { member: repeated, text: 'The header contains this column more than once. Keep only one.' }
  return names.includes('email') ? undefined : missingColumn('email')
}

function missingColumn(name: string): Problem {
  return {
    member: name,
    text: 'The header does not contain this column. The first line must contain the names of the columns.',
  }
}

function readRecord(row: Row, columns: readonly string[]): FileRecord {
  if ('problem' in row) return row
  const { line, cells } = row
  if (cells.length === columns.length) return { line, members: membersOfCells(columns, cells) }
  const text = `The record has ${cells.length} cells. It must have ${columns.length}, like the header.`
  return { line, problem: recordProblem(text) }
}

const comma = 0x2c
const quote = 0x22
const lineFeed = 0x0a
const carriageReturn = 0x0d

const quoteInCell = recordProblem(
  'A cell contains a quote but does not begin with one. Put the cell into quotes, and double the quotes in it.',
)
const textAfterQuote = recordProblem(
  'Text follows the closing quote of a cell. Double the quotes inside the cell.',
)
const bareCarriageReturn = recordProblem(
  'A cell without quotes contains a carriage return. End lines with LF or CRLF.',
)
const openQuote = recordProblem('The file ends inside a quoted cell. Close the quote.')

/** Yields all rows except blank lines. After a problem, skips to the next line end outside of quotes. */
async function* readRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<Row> {
  const parser = new RowParser()
  for await (const chunk of chunks) yield* parser.read(chunk)
  yield* parser.end()
}

class RowParser {
  /** The content of the current record's cells, without quotes. */
  readonly #content = Buffer.alloc(maxRecordBytes)
  #length = 0
  /** For each finished cell, the position in `#content` at which the cell ends. */
  #ends: number[] = []
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start'
  #isAfterCarriageReturn = false
  #hasQuote = false
  /** The number of bytes of the current record so far. */
  #size = 0
  #problem: Problem | undefined
  #line = 1
  #firstLine = 1

  #fail(problem: Problem): void {
    this.#problem ??= problem
  }

  *read(chunk: Buffer): Generator<Row> {
    for (const byte of chunk) {
      if (this.#isAfterCarriageReturn) {
        this.#isAfterCarriageReturn = false
        if (byte !== lineFeed) {
          this.#size += 1
          this.#fail(bareCarriageReturn)
        }
      }
      if (this.#state === 'quoted') this.#readQuoted(byte)
      else if (byte === lineFeed) {
        this.#line += 1
        yield* this.#finish()
      } else if (byte === carriageReturn) this.#isAfterCarriageReturn = true
      else this.#readUnquoted(byte)
    }
  }

  *end(): Generator<Row> {
    if (this.#state === 'quoted') this.#fail(openQuote)
    yield* this.#finish()
  }

  #readQuoted(byte: number): void {
    this.#size += 1
    if (byte === lineFeed) this.#line += 1
    if (byte === quote) this.#state = 'closed'
    else this.#append(byte)
  }

  #readUnquoted(byte: number): void {
    this.#size += 1
    if (byte === comma) {
      this.#endCell()
      this.#state = 'start'
    } else if (byte === quote && this.#state !== 'plain') {
      // Two quotes in a row, inside a quoted cell, mean one quote. The first of them was read as a closing quote.
      if (this.#state === 'closed') this.#append(quote)
      this.#state = 'quoted'
      this.#hasQuote = true
    } else {
      if (byte === quote) this.#fail(quoteInCell)
      if (this.#state === 'closed') this.#fail(textAfterQuote)
      this.#append(byte)
      this.#state = 'plain'
    }
  }

  /** Appends a byte to the cell. If the record is too large, the byte is dropped, because the record is invalid. */
  #append(byte: number): void {
    if (this.#size <= maxRecordBytes) this.#content[this.#length++] = byte
  }

  #endCell(): void {
    if (this.#size <= maxRecordBytes) this.#ends.push(this.#length)
  }

  *#finish(): Generator<Row> {
    this.#endCell()
    const line = this.#firstLine
    const problem = this.#size > maxRecordBytes ? recordProblems.size : this.#problem
    const cells = problem === undefined ? this.#decodeCells() : undefined
    const isBlank = !this.#hasQuote && cells?.length === 1 && cells[0]?.trim() === ''
    this.#length = 0
    this.#ends = []
    this.#state = 'start'
    this.#hasQuote = false
    this.#isAfterCarriageReturn = false
    this.#size = 0
    this.#problem = undefined
    this.#firstLine = this.#line
    if (isBlank) return
    yield cells === undefined ? { line, problem: problem ?? recordProblems.encoding } : { line, cells }
  }

  /** @returns undefined if the record is not UTF-8 */
  #decodeCells(): string[] | undefined {
    const cells: string[] = []
    let start = 0
    for (const end of this.#ends) {
      const cell = decodeUtf8(this.#content.subarray(start, end))
      if (cell === undefined) return undefined
      cells.push(cell)
      start = end
    }
    return cells
  }
}
