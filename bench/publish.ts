// Generates the tables, the charts and the alternative text of the charts from the results of a run.
import { readFileSync, writeFileSync } from 'node:fs'
import { type Colors, chart, light } from './chart.ts'
import { inCheckout, type Recording } from './recording.ts'
import { type Report, reportOf } from './report.ts'
import { base, kinds, ours, peers, rememberSeconds, rowName } from './row-names.ts'
import { barTable, resultTables } from './tables.ts'

/**
 * The labels in the charts, by row name. All rows except the base row receive the same request. The base row receives a
 * request without a token.
 */
const shown = new Map<string, string>([
  [rowName(ours, kinds.bearer), 'Péage, access token'],
  [base, `${base}, no auth`],
  [peers.nginx, 'nginx auth_request'],
  [peers.nginxRemembering, `nginx, auth service remembers ${rememberSeconds} s`],
  [peers.nginxCache, 'nginx auth_request, 15 s cache'],
  [peers.caddy, 'Caddy forward_auth'],
  [peers.caddyRemembering, `Caddy, auth service remembers ${rememberSeconds} s`],
  [peers.haproxy, 'HAProxy, no user look-up'],
  [peers.expressGateway, 'Express Gateway, no user look-up'],
])

const dark: Colors = {
  page: '#0d1117',
  words: '#e6edf3',
  faint: '#30363d',
  base: '#8b949e',
  ours: '#ff8b82',
  others: '#79b8ff',
}

export interface Published {
  /** The new text between the markers in docs/benchmark.md. */
  readonly results: string
  /** The new text between the markers in docs/dev/benchmark-log.md. */
  readonly bars: string
  readonly charts: { readonly light: string; readonly dark: string }
  /** The alternative text of the charts. */
  readonly words: string
}

/** @throws Error if the recording lacks a row of the charts */
export function published(recording: Recording): Published {
  const report = reportOf(recording)
  const rows = chartedRows(report)
  const title = `CPU per request, as a multiple of ${base} (median and quartiles; less is better)`
  const costs = rows.map(({ name, ratio }) => `${name} ${ratio.median.toFixed(2)}`)
  return {
    results: resultTables(report),
    bars: barTable(report),
    charts: { light: chart(rows, title, light), dark: chart(rows, title, dark) },
    words: `CPU per request, as a multiple of ${base}: ${costs.join('; ')}.`,
  }
}

function chartedRows({ rows }: Report) {
  return [...shown]
    .map(([row, name]) => {
      const found = rows.find(reported => reported.name === row)
      if (found === undefined) throw new Error(`the recording lacks the row ${row}`)
      return { name, ratio: found.full.ratio }
    })
    .sort((one, other) => one.ratio.median - other.ratio.median)
}

/** Matches the text between the markers of a page. */
export const generated = /(?<=<!-- generated: npm run bench -- --record -->\n\n)[\s\S]*(?=\n\n<!-- end -->)/

/** Matches the alternative text of the chart in the README. */
export const alternative = /(?<=src="docs\/images\/costs-light\.svg" alt=")[^"]*/

export function publish(recording: Recording): void {
  const { results, bars, charts, words } = published(recording)
  replace('docs/benchmark.md', generated, results)
  replace('docs/dev/benchmark-log.md', generated, bars)
  replace('README.md', alternative, words)
  for (const [look, svg] of Object.entries(charts)) {
    writeFileSync(inCheckout(`docs/images/costs-${look}.svg`), svg)
  }
}

function replace(page: string, place: RegExp, text: string): void {
  const before = readFileSync(inCheckout(page), 'utf8')
  if (!place.test(before))
    throw new Error(`${page} lacks the markers or the chart that the benchmark updates`)
  writeFileSync(
    inCheckout(page),
    before.replace(place, () => text),
  )
}
