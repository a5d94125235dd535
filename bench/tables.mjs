// The results as tables: aligned for a terminal, which is good Markdown too.

/** @typedef {import('./results.mjs').Results} Results */

/** @param {Results} results */
export function tables({ rows, absent, failed, bars, notes }) {
  const named = (/** @type {Record<string, string>} */ these, /** @type {string} */ word) =>
    Object.entries(these).map(([name, reason]) => `- ${word}: ${name} (${reason.split('\n').at(-1)})`)
  return [
    ...notes,
    '',
    rowTable(rows),
    '',
    ...named(absent, 'absent'),
    ...named(failed, 'failed, not timed'),
    '',
    barTable(bars),
  ].join('\n')
}

/** @param {Results['rows']} rows */
function rowTable(rows) {
  const head = ['row', 'req/s', 'p50 ms', 'p99 ms', 'CPU s/1,000', 'cores', 'MiB', 'CPU ratio [quartiles]']
  const lines = rows.map(row => [
    row.name,
    row.requestsPerSecond.toFixed(0),
    milliseconds(row.p50),
    milliseconds(row.p99),
    row.cpuPerThousand.toFixed(4),
    row.cores.toFixed(2),
    row.memory.toFixed(0),
    ratioText(row.ratio),
  ])
  return aligned([head, ...lines], 1)
}

/** @param {number} latency */
function milliseconds(latency) {
  return Number.isNaN(latency) ? '—' : latency.toFixed(2)
}

/** @param {Results['bars']} bars */
function barTable(bars) {
  const head = ['must show', 'row', 'against', 'at most', 'aim', 'measured [quartiles]', 'verdict']
  const lines = bars.map(({ cost, row, against, atMost, aim, ratio, verdict }) => [
    cost,
    row,
    against,
    atMost.toFixed(2),
    aim?.toFixed(2) ?? '',
    ratio === undefined ? '' : ratioText(ratio),
    verdict,
  ])
  return aligned([head, ...lines], 3)
}

/** @param {import('./report.mjs').Ratio} ratio */
export function ratioText({ median, lowerQuartile, upperQuartile }, decimals = 2) {
  const [middle, low, high] = [median, lowerQuartile, upperQuartile].map(one => one.toFixed(decimals))
  return `${middle} [${low}–${high}]`
}

/**
 * @param {readonly string[][]} lines the first is the head
 * @param {number} words columns of words, at the left; the others are numbers
 */
function aligned(lines, words) {
  const [head = []] = lines
  const widths = head.map((_, column) => Math.max(3, ...lines.map(line => line[column]?.length ?? 0)))
  const pad = (/** @type {string} */ cell, /** @type {number} */ at) =>
    at < words ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)
  const rule = widths.map((width, at) => (at < words ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const [first, ...rest] = lines.map(line => `| ${line.map(pad).join(' | ')} |`)
  return [first, `| ${rule.join(' | ')} |`, ...rest].join('\n')
}
