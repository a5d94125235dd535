// Lines and columns, as editors count them.

export interface Position {
  /** Both count from 1. */
  readonly line: number
  readonly column: number
}

/** @returns where the character is that `offset` others stand before; the end of the last line for what ends the file */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const end = text.trimEnd().length
  return offset => {
    // What ends the file (a quote that is never closed) is shown at the end of its last line.
    const within = Math.min(offset, end)
    let line = starts.findIndex(start => start > within)
    if (line === -1) line = starts.length
    return { line, column: within - (starts[line - 1] ?? 0) + 1 }
  }
}
