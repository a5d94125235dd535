// Prints the output of commands as a stream, and formats tables.
import type { Writable } from 'node:stream'

/** If the reader closes the pipe early (`| head`), printing stops without an error. */
export async function print(
  output: Writable,
  chunks: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  // A failed write also emits `error`. Without a listener, that event would end the process.
  output.on('error', () => {})
  for await (const chunk of chunks) {
    const failure = await new Promise<NodeJS.ErrnoException | null | undefined>(resolve =>
      output.write(chunk, resolve),
    )
    if (failure?.code === 'EPIPE') return
    if (failure) throw failure
  }
}

/**
 * Formats a table page by page. Rows that are already printed cannot change, so a column may become wider on a later
 * page.
 */
export function createTable(heading?: readonly string[]): (rows: readonly (readonly string[])[]) => string {
  const widths: number[] = []
  let pendingHeading = heading === undefined ? [] : [heading]
  return page => {
    const rows = [...pendingHeading, ...page]
    pendingHeading = []
    for (const row of rows) {
      for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length)
    }
    const line = (row: readonly string[]) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')
    return rows.map(row => `${line(row).trimEnd()}\n`).join('')
  }
}
