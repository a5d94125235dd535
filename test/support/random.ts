// Pseudo-random numbers. The same seed leads to the same numbers.

/** Returns a random integer from 0 to `below - 1`. */
export type Random = (below: number) => number

/** Uses the algorithm Mulberry32, which is short and good enough for mutations. */
export function createRandom(seed: number): Random {
  let state = seed | 0
  return below => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

export function oneOf<T>(list: readonly T[], random: Random): T {
  return list[random(list.length)] as T
}
