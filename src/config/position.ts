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
    const line = countWhile(starts, start => start <= within)
    return { line, column: within - (starts[line - 1] ?? 0) + 1 }
  }
}

/** How many of the first items hold a condition that none holds after one that does not: looks at few of many. */
export function countWhile<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let least = 0
  let most = items.length
  while (least < most) {
    const middle = (least + most) >>> 1
    if (holds(items[middle] as T)) least = middle + 1
    else most = middle
  }
  return least
}
