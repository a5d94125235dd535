// What the rounds say: each contender's medians, and its CPU per request against another's in the same round.

/**
 * @typedef {object} Row
 * @property {string} name
 * @property {number} requestsPerSecond
 * @property {number} p50 milliseconds
 * @property {number} p99 milliseconds
 * @property {number} cpuPerThousand seconds of CPU per 1,000 requests
 * @property {number} busy share of one core
 * @property {number} memory MiB, peak
 * @property {Ratio} ratio CPU per request against the base contender
 */

/** @typedef {{ median: number, lowerQuartile: number, upperQuartile: number }} Ratio */

/**
 * @param {readonly import('./rounds.mjs').Round[]} rounds
 * @param {string} base
 * @returns {Row[]}
 */
export function summarise(rounds, base) {
  const names = [...(rounds[0]?.keys() ?? [])]
  return names.map(name => {
    const of = (/** @type {(measured: import('./load.mjs').Measured) => number} */ read) =>
      quantile(
        rounds.map(round => read(measured(round, name))),
        0.5,
      )
    const ratios = rounds.map(round => perRequest(measured(round, name)) / perRequest(measured(round, base)))
    return {
      name,
      requestsPerSecond: of(({ requests, seconds }) => requests / seconds),
      p50: of(({ p50 }) => p50),
      p99: of(({ p99 }) => p99),
      cpuPerThousand: of(one => perRequest(one) * 1000),
      busy: of(({ cpu, seconds }) => cpu / seconds),
      memory: of(({ memory }) => memory),
      ratio: {
        median: quantile(ratios, 0.5),
        lowerQuartile: quantile(ratios, 0.25),
        upperQuartile: quantile(ratios, 0.75),
      },
    }
  })
}

/** @param {readonly Row[]} rows */
export function table(rows) {
  const lines = rows.map(row => [
    row.name,
    row.requestsPerSecond.toFixed(0),
    row.p50.toFixed(2),
    row.p99.toFixed(2),
    row.cpuPerThousand.toFixed(4),
    row.busy.toFixed(2),
    row.memory.toFixed(0),
    `${row.ratio.median.toFixed(2)} [${row.ratio.lowerQuartile.toFixed(2)}–${row.ratio.upperQuartile.toFixed(2)}]`,
  ])
  const head = [
    'contender',
    'req/s',
    'p50 ms',
    'p99 ms',
    'CPU s/1,000',
    'cores',
    'MiB',
    'CPU ratio [quartiles]',
  ]
  const all = [head, ...lines]
  const widths = head.map((_, column) => Math.max(...all.map(line => line[column]?.length ?? 0)))
  return all
    .map(line =>
      line
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
        .join('  '),
    )
    .join('\n')
}

/**
 * @param {import('./rounds.mjs').Round} round
 * @param {string} name
 */
function measured(round, name) {
  const one = round.get(name)
  if (one === undefined) throw new Error(`${name} has no slice in this round`)
  return one
}

/** @param {import('./load.mjs').Measured} one */
function perRequest({ cpu, requests }) {
  return cpu / requests
}

/**
 * @param {readonly number[]} values
 * @param {number} share
 */
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const low = /** @type {number} */ (sorted[Math.floor(at)])
  const high = /** @type {number} */ (sorted[Math.ceil(at)])
  return low + (high - low) * (at - Math.floor(at))
}
