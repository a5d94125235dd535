// The tables of a page of docs/, as rows of cells.
import { readFileSync } from 'node:fs'

/** @param page a file name in docs/ @returns the cells of every row whose first cell is one piece of code */
export function codeRows(page: string): string[][] {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  return text
    .split('\n')
    .filter(line => /^\| `[^`]+` \|/.test(line))
    .map(line =>
      line
        .slice(1, -1)
        .split('|')
        .map(cell => cell.trim()),
    )
}

/** `x` of a cell that is the code x; any other cell as it stands. */
export function plain(cell: string | undefined): string {
  return cell?.replace(/^`([^`]*)`$/, '$1') ?? ''
}
