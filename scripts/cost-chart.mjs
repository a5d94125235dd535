// What a guarded request costs beside what others put there: a chart of the table in docs/benchmark.md, for the README.
import { chart } from '../bench/chart.mjs'

/** Rows of the table that answer the same question, and what the README calls them. */
const shown = new Map([
  ['gateway, bearer', 'Péage, access token'],
  ['@fastify/http-proxy', '@fastify/http-proxy, no auth'],
  ['nginx + auth_request', 'nginx auth_request'],
  ['nginx + auth_request, 15 s cache', 'nginx auth_request, 15 s cache'],
  ['Caddy forward_auth', 'Caddy forward_auth'],
  ['HAProxy jwt_verify (no user look-up)', 'HAProxy, no user look-up'],
  ['Express Gateway jwt (no user look-up)', 'Express Gateway, no user look-up'],
])

const light = { page: '#fff', words: '#222', faint: '#ddd', base: '#555', ours: '#b3261e', others: '#37618e' }
const dark = {
  page: '#0d1117',
  words: '#e6edf3',
  faint: '#30363d',
  base: '#8b949e',
  ours: '#ff8b82',
  others: '#79b8ff',
}

/** @param {string} page docs/benchmark.md */
export function costCharts(page) {
  const rows = [...page.matchAll(/^\| (.+?) +\|.*\| +([\d.]+) \[([\d.]+)–([\d.]+)\] \|$/gm)]
    .flatMap(([, row = '', median, lowerQuartile, upperQuartile]) => {
      const name = shown.get(row)
      const ratio = {
        median: Number(median),
        lowerQuartile: Number(lowerQuartile),
        upperQuartile: Number(upperQuartile),
      }
      return name === undefined ? [] : [{ name, ratio }]
    })
    .sort((one, other) => one.ratio.median - other.ratio.median)
  if (rows.length !== shown.size) throw new Error('docs/benchmark.md has not every row that the chart shows')
  const title = 'CPU per request, as a multiple of @fastify/http-proxy (median and quartiles; less is better)'
  return { light: chart(rows, title, light), dark: chart(rows, title, dark) }
}
