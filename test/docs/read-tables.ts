// Reads the tables of a page under docs/ as rows of cells.
import { readFileSync } from 'node:fs'

/** @param page a file name in docs/ @returns the cells of every row whose first cell is one piece of code */
export function codeRows(page: string): string[][] {
  return linesOf(page)
    .filter(line => /^\| `[^`]+` \|/.test(line))
    .map(cellsOf)
}

/** @param first pattern of the whole first cell @returns the cells of every matching row, in the page's order */
export function rowsStarting(first: RegExp, page: string): string[][] {
  return linesOf(page)
    .filter(line => line.startsWith('|'))
    .map(cellsOf)
    .filter(([cell = '']) => first.test(cell))
}

/** Returns the cells of every row between a heading and the next one, without the head of the table. */
export function rowsUnder(heading: string, page: string): string[][] {
  const lines = linesOf(page)
  const from = lines.indexOf(heading) + 1
  if (from === 0) throw new Error(`no ${heading} in ${page}`)
  const to = lines.findIndex((line, at) => at >= from && line.startsWith('#'))
  const table = lines.slice(from, to === -1 ? undefined : to).filter(line => line.startsWith('|'))
  return table.slice(2).map(cellsOf)
}

/** Returns a cell without the backticks around it, if it has any. */
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
