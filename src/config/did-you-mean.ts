// Finds the known word that an operator probably meant.

/**
 * Returns the known word that differs from `word` by the fewest edits. Undefined if every known word differs by too
 * many edits. Letter case and punctuation are ignored.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const wanted = fold(word)
  if (wanted === '') return undefined
  let best: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const folded = fold(candidate)
    const most = Math.max(1, Math.floor(Math.max(wanted.length, folded.length) / 3))
    // The edit distance is at least the difference in length, so most candidates need no comparison.
    if (Math.abs(wanted.length - folded.length) > Math.min(most, least)) continue
    const distance = edits(wanted, folded)
    if (distance < least && distance <= most) {
      best = candidate
      least = distance
    }
  }
  return best
}

const fold = (word: string) =>
  word
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '')

/** Counts the edits that turn `a` into `b`. A swap of neighbors is one edit (optimal string alignment distance). */
function edits(a: string, b: string): number {
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(replaced, at(previous, j) + 1, at(current, j - 1) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, at(before, j - 2) + 1)
      }
      current.push(least)
    }
    before = previous
    previous = current
  }
  return at(previous, b.length)
}

const at = (row: readonly number[], index: number) => row[index] ?? Number.POSITIVE_INFINITY
