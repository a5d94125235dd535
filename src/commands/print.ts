// Output of the commands: streamed, and in aligned columns.
import type { Writable } from 'node:stream'

/** Writes each chunk as it arrives. A reader that closes the pipe early (`| head`) ends it without an error. */
export async function print(
  output: Writable,
  chunks: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  // The stream also emits the failure as `error`, and without a listener that would end the process.
  output.on('error', () => {})
  for await (const chunk of chunks) {
    const failure = await new Promise<NodeJS.ErrnoException | null | undefined>(resolve =>
      output.write(chunk, resolve),
    )
    if (failure?.code === 'EPIPE') return
    if (failure) throw failure
  }
}

/** Formats a table page by page. Columns may widen on a later page, because printed rows cannot be realigned. */
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
