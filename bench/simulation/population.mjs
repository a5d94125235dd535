// Users who ask often and users who ask seldom: the share of each by its rank, after Zipf, and who is drawn by chance.

/**
 * @param {number} users
 * @param {number} exponent 0: all ask equally often; 1: the second half as often as the first
 * @returns {Float64Array} shares by rank, which add up to 1
 */
export function zipf(users, exponent) {
  const shares = new Float64Array(users)
  let sum = 0
  for (let rank = 0; rank < users; rank += 1) {
    shares[rank] = (rank + 1) ** -exponent
    sum += shares[rank]
  }
  for (let rank = 0; rank < users; rank += 1) shares[rank] /= sum
  return shares
}

/** Always the same numbers from 0 to 1 for a seed (mulberry32). @param {number} seed */
export function createRandom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Draws from a set by share (Walker's alias method: one look for each draw, however many there are).
 * @param {Float64Array} shares
 * @param {() => number} random
 * @returns {() => number} an index
 */
export function createDraw(shares, random) {
  const count = shares.length
  let sum = 0
  for (const share of shares) sum += share
  const keep = new Float64Array(count)
  const other = new Uint32Array(count)
  const small = new Uint32Array(count)
  const large = new Uint32Array(count)
  let smalls = 0
  let larges = 0
  for (let at = 0; at < count; at += 1) {
    keep[at] = (shares[at] / sum) * count
    if (keep[at] < 1) small[smalls++] = at
    else large[larges++] = at
  }
  while (smalls > 0 && larges > 0) {
    const low = small[--smalls]
    const high = large[larges - 1]
    other[low] = high
    keep[high] -= 1 - keep[low]
    if (keep[high] < 1) small[smalls++] = large[--larges]
  }
  while (smalls > 0) keep[small[--smalls]] = 1
  while (larges > 0) keep[large[--larges]] = 1
  return () => {
    const at = Math.floor(random() * count)
    return random() < keep[at] ? at : other[at]
  }
}
