// Reads the tables of a page under docs/.
import { readFileSync } from 'node:fs'

/** @param page a file name in docs/ @returns the cells of each row whose first cell contains only code in backticks */
export function codeRows(page: string): string[][] {
  return linesOf(page)
    .filter(line => /^\| `[^`]+` \|/.test(line))
    .map(cellsOf)
}

/** @param first the pattern of the first cell @returns the cells of each row whose first cell matches, in page order */
export function rowsStarting(first: RegExp, page: string): string[][] {
  return linesOf(page)
    .filter(line => line.startsWith('|'))
    .map(cellsOf)
    .filter(([cell = '']) => first.test(cell))
}

/** Returns the cells of each row in the section with this heading. The head of the table is not included. */
export function rowsUnder(heading: string, page: string): string[][] {
  const lines = linesOf(page)
  const from = lines.indexOf(heading) + 1
  if (from === 0) throw new Error(`no ${heading} in ${page}`)
  const to = lines.findIndex((line, at) => at >= from && line.startsWith('#'))
  const table = lines.slice(from, to === -1 ? undefined : to).filter(line => line.startsWith('|'))
  return table.slice(2).map(cellsOf)
}

/** Returns the text of a cell. If backticks enclose the whole text, they are removed. */
export function plain(cell: string | undefined): string {
  return cell?.replace(/^`([^`]*)`$/, '$1') ?? ''
}

/** @param page a file name in docs/ */
export function linesOf(page: string): string[] {
  return readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8').split('\n')
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map(cell => cell.trim())
}
