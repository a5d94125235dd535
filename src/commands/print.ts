// How commands write what they found: as it comes, and in aligned columns.
import type { Writable } from 'node:stream'

/** Writes what comes as it comes. A reader that has seen enough (`| head`) ends it, and is no error. */
export async function print(
  output: Writable,
  chunks: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  // The stream reports a failure twice, and an `error` that nobody listens to would end the process.
  output.on('error', () => {})
  for await (const chunk of chunks) {
    const failure = await new Promise<NodeJS.ErrnoException | null | undefined>(resolve =>
      output.write(chunk, resolve),
    )
    if (failure?.code === 'EPIPE') return
    if (failure) throw failure
  }
}

/** Lays out page after page; columns may widen from one to the next, as what is printed cannot be moved. */
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
