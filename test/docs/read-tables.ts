// The tables of a page of docs/, as rows of cells.
import { readFileSync } from 'node:fs'

/** @param page a file name in docs/ @returns the cells of every row whose first cell is one piece of code */
export function codeRows(page: string): string[][] {
  return linesOf(page)
    .filter(line => /^\| `[^`]+` \|/.test(line))
    .map(cellsOf)
}

/** @param first what the whole first cell is like @returns the cells of every such row, in the page's order */
export function rowsStarting(first: RegExp, page: string): string[][] {
  return linesOf(page)
    .filter(line => line.startsWith('|'))
    .map(cellsOf)
    .filter(([cell = '']) => first.test(cell))
}

/** The cells of every row under a heading, up to the next, without those of the table's head. */
export function rowsUnder(heading: string, page: string): string[][] {
  const lines = linesOf(page)
  const from = lines.indexOf(heading) + 1
  if (from === 0) throw new Error(`no ${heading} in ${page}`)
  const to = lines.findIndex((line, at) => at >= from && line.startsWith('#'))
  const table = lines.slice(from, to === -1 ? undefined : to).filter(line => line.startsWith('|'))
  return table.slice(2).map(cellsOf)
}

/** `x` of a cell that is the code x; any other cell as it stands. */
export function plain(cell: string | undefined): string {
  return cell?.replace(/^`([^`]*)`$/, '$1') ?? ''
}

function linesOf(page: string): string[] {
  return readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8').split('\n')
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map(cell => cell.trim())
}
