// Formats the report as Markdown tables with aligned columns, which are also readable in a terminal.
import { type Report, thousands } from './report.ts'
import type { Spread } from './spread.ts'

/** Returns the tables of the results and the table of the bars. */
export function tables(report: Report): string {
  return `${resultTables(report)}\n\n${barTable(report)}`
}

export function resultTables(report: Report): string {
  const { notes, rate, absent, failed } = report
  const named = (rows: Readonly<Record<string, string>>, word: string) =>
    Object.entries(rows).map(([name, reason]) => `- ${word}: ${name} (${reason.split('\n').at(-1)})`)
  const missing = [...named(absent, 'absent'), ...named(failed, 'failed, not timed')]
  return [
    notes.join('\n'),
    'Full load: each connection sends its next request as soon as it has received a response.',
    fullTable(report),
    `Fixed rate: ${thousands(rate)} requests/s for each process.`,
    pacedTable(report),
    ...(missing.length > 0 ? [missing.join('\n')] : []),
  ].join('\n\n')
}

function fullTable({ rows }: Report): string {
  const lines = rows.map(({ name, full }) => [
    name,
    full.requestsPerSecond.toFixed(0),
    full.cpuPerThousand.toFixed(4),
    spreadText(full.ratio),
    full.memory.toFixed(0),
  ])
  return aligned([['row', 'req/s', 'CPU s/1,000', 'CPU ratio [quartiles]', 'MiB'], ...lines], 1)
}

function pacedTable({ rows }: Report): string {
  const lines = rows.map(({ name, paced }) => [
    name,
    paced.requestsPerSecond.toFixed(0),
    milliseconds(paced.p50),
    milliseconds(paced.p99),
    paced.cpuPerThousand.toFixed(4),
  ])
  return aligned([['row', 'req/s', 'p50 ms', 'p99 ms', 'CPU s/1,000'], ...lines], 1)
}

function milliseconds(latency: number | null): string {
  return latency === null ? '—' : latency.toFixed(2)
}

export function barTable({ bars }: Report): string {
  const lines = bars.map(({ cost, row, against, atMost, aim, ratio, verdict }) => [
    cost,
    row,
    against,
    atMost.toFixed(2),
    aim?.toFixed(2) ?? '',
    ratio === undefined ? '' : spreadText(ratio),
    verdict,
  ])
  const head = ['cost', 'row', 'compared with', 'at most', 'aim', 'measured [quartiles]', 'verdict']
  return aligned([head, ...lines], 3)
}

function spreadText({ median, lowerQuartile, upperQuartile }: Spread): string {
  return `${median.toFixed(2)} [${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)}]`
}

/**
 * Returns the lines as a Markdown table.
 * @param lines the rows of the table; the first row is the header
 * @param words the number of text columns, which are on the left; the columns on the right contain numbers
 */
function aligned(lines: readonly (readonly string[])[], words: number): string {
  const [head = []] = lines
  const widths = head.map((_, column) => Math.max(3, ...lines.map(line => line[column]?.length ?? 0)))
  const pad = (cell: string, at: number) =>
    at < words ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)
  const rule = widths.map((width, at) => (at < words ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  const [first, ...rest] = lines.map(line => `| ${line.map(pad).join(' | ')} |`)
  return [first, `| ${rule.join(' | ')} |`, ...rest].join('\n')
}
