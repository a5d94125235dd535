// Lines and columns, as editors count them.

export interface Position {
  /** Both count from 1. */
  readonly line: number
  readonly column: number
}

/** @returns the position of an offset; past the text, the end of its last line */
export function positionsIn(text: string): (offset: number) => Position {
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const end = text.trimEnd().length
  return offset => {
    // An error at the end of the file (an unclosed quote) is shown at the end of its last line.
    const within = Math.min(offset, end)
    const line = countWhile(starts, start => start <= within)
    return { line, column: within - (starts[line - 1] ?? 0) + 1 }
  }
}

/** Counts the leading items that meet a condition which no later item meets, by binary search. */
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
