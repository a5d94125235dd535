// What the simulation ought to give: the hit rate of a cache that forgets who was asked for longest ago, after Che, Tung and
// Wang (2002), with users who are forgotten because they changed.

/**
 * A user is remembered who asked within the last `memory` seconds and has not changed since: of requests at a rate `r` and
 * changes at a rate `c` that is a share of r / (r + c) × (1 − e^(−(r + c) × memory)). `memory` is the time in which as many
 * different users ask as there are places; where the places are never filled, all of the time since the start.
 * @param {object} cache
 * @param {{ rate: number, count: number }[]} cache.users in groups: requests a second of one, and how many are like it
 * @param {number} cache.places
 * @param {number} cache.changeRate of one user, a second
 * @param {number} cache.seconds since the start
 * @returns {{ hitRate: number, remembered: number }}
 */
export function expected({ users, places, changeRate, seconds }) {
  const isThere = (rate, memory) => (rate / (rate + changeRate)) * -Math.expm1(-(rate + changeRate) * memory)
  const sumOver = value => users.reduce((sum, { rate, count }) => sum + count * value(rate), 0)
  const rememberedIn = memory => sumOver(rate => isThere(rate, memory))
  let memory = seconds
  if (rememberedIn(seconds) > places) {
    let [low, high] = [0, seconds]
    for (let step = 0; step < 60; step += 1) {
      memory = (low + high) / 2
      if (rememberedIn(memory) > places) high = memory
      else low = memory
    }
  }
  const hits = sumOver(rate => rate * isThere(rate, memory))
  return { hitRate: hits / sumOver(rate => rate), remembered: rememberedIn(memory) }
}

/**
 * Users in groups of like rates, so that the sums above are over thousands and not millions.
 * @param {Float64Array} rates in falling order
 */
export function grouped(rates) {
  const groups = []
  for (let from = 0; from < rates.length; ) {
    const to = Math.min(rates.length, Math.max(from + 1, Math.floor(from * 1.003)))
    let sum = 0
    for (let at = from; at < to; at += 1) sum += rates[at]
    groups.push({ rate: sum / (to - from), count: to - from })
    from = to
  }
  return groups
}
