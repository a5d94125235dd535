// Implements weighted round-robin. Let n be the sum of the weights, after each weight was divided by their greatest
// common divisor. In any n turns in a row, each candidate gets exactly its share.

/**
 * The maximum number of candidate sets whose sequences are kept. More sets occur only if many targets fail one after
 * another.
 */
const maxSets = 64

export interface WeightedRoundRobin {
  /** The index of the candidate whose turn it is; undefined if no candidate has a weight. */
  next(isCandidate: (index: number) => boolean): number | undefined
}

/**
 * Implements smooth weighted round-robin, with a separate sequence for each set of candidates. While the set does not
 * change, its sequence is periodic. If an earlier set of candidates occurs again, its sequence continues. A candidate
 * that was missing for a while gets no extra turns afterwards.
 * @param weights not negative; a candidate with weight 0 is never chosen
 */
export function createWeightedRoundRobin(weights: readonly number[]): WeightedRoundRobin {
  const sequences = new Map<
    string,
    { readonly indexes: readonly number[]; readonly credit: number[]; sum: number }
  >()
  const all = weights.flatMap((weight, index) => (weight > 0 ? [index] : []))

  function sequenceOf(indexes: readonly number[]) {
    const name = indexes.join()
    const known = sequences.get(name)
    if (known !== undefined) return known
    if (sequences.size >= maxSets) sequences.clear()
    const sum = indexes.reduce((total, index) => total + (weights[index] ?? 0), 0)
    const sequence = { indexes, credit: indexes.map(() => 0), sum }
    sequences.set(name, sequence)
    return sequence
  }

  const whole = sequenceOf(all)
  return {
    next(isCandidate) {
      const isWhole = all.every(isCandidate)
      const { indexes, credit, sum } = isWhole ? whole : sequenceOf(all.filter(isCandidate))
      if (indexes.length === 0) return undefined
      let best = 0
      for (const [position, index] of indexes.entries()) {
        credit[position] = (credit[position] ?? 0) + (weights[index] ?? 0)
        if ((credit[position] ?? 0) > (credit[best] ?? 0)) best = position
      }
      credit[best] = (credit[best] ?? 0) - sum
      return indexes[best]
    },
  }
}
