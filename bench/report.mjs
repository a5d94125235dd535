// What the rounds say: each row's medians, and what it costs against another in the same round.

/**
 * @typedef {object} Reported
 * @property {string} name
 * @property {number} requestsPerSecond as many as it answers
 * @property {number} p50 milliseconds, at the fixed rate, or of one client alone; NaN (`null` in JSON) where it did not keep up
 * @property {number} p99 likewise
 * @property {number} cpuPerThousand seconds of CPU per 1,000 requests
 * @property {number} cores that it had
 * @property {number} memory MiB, peak
 * @property {Ratio} ratio CPU per request against the base row
 */

/** @typedef {{ median: number, lowerQuartile: number, upperQuartile: number, pairs: number }} Ratio */
/** @typedef {import('./rounds.mjs').Round} Round */

/**
 * @param {import('./rounds.mjs').Outcome} outcome
 * @param {readonly string[]} names
 * @param {string} base
 * @param {number} perSecond requests in the paced rounds
 * @returns {Reported[]}
 */
export function summarise({ rounds, paced }, names, base, perSecond) {
  // Behind the rate the latency is that of a queue which only grows.
  const keptUp = (/** @type {import('./load.mjs').Measured} */ { requests, seconds }) =>
    requests / seconds >= perSecond * 0.95
  return names.map(name => {
    const medianOf = (
      /** @type {readonly Round[]} */ of,
      /** @type {(measured: import('./load.mjs').Measured) => number} */ read,
    ) => quantile(of.flatMap(round => round.get(name) ?? []).map(read), 0.5)
    const isPaced = paced.some(round => round.has(name))
    const latencyOf = (/** @type {(measured: import('./load.mjs').Measured) => number} */ read) =>
      isPaced ? medianOf(paced, one => (keptUp(one) ? read(one) : Number.NaN)) : medianOf(rounds, read)
    return {
      name,
      requestsPerSecond: medianOf(rounds, ({ requests, seconds }) => requests / seconds),
      p50: latencyOf(one => one.p50),
      p99: latencyOf(one => one.p99),
      cpuPerThousand: medianOf(rounds, one => perRequest(one) * 1000),
      cores: medianOf(rounds, ({ cpu, seconds }) => cpu / seconds),
      memory: Math.max(...rounds.flatMap(round => round.get(name)?.memory ?? [])),
      ratio: ratio(rounds, name, base, perRequest),
    }
  })
}

/**
 * One against another, round by round.
 * @param {readonly Round[]} rounds
 * @param {string} name
 * @param {string} against
 * @param {(measured: import('./load.mjs').Measured) => number} cost
 * @returns {Ratio}
 */
export function ratio(rounds, name, against, cost) {
  const ratios = rounds.flatMap(round => {
    const one = round.get(name)
    const other = round.get(against)
    return one === undefined || other === undefined ? [] : [cost(one) / cost(other)]
  })
  return spreadOf(ratios)
}

/** @param {readonly number[]} ratios @returns {Ratio} */
export function spreadOf(ratios) {
  return {
    median: quantile(ratios, 0.5),
    lowerQuartile: quantile(ratios, 0.25),
    upperQuartile: quantile(ratios, 0.75),
    pairs: ratios.length,
  }
}

/** @param {import('./load.mjs').Measured} one */
export function perRequest({ cpu, requests }) {
  return cpu / requests
}

/**
 * @param {readonly number[]} values
 * @param {number} share
 */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}
