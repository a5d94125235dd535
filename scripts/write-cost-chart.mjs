// Writes the README's charts of costs from the table in docs/benchmark.md: `npm run cost-chart`.
import { readFileSync, writeFileSync } from 'node:fs'
import { costCharts } from './cost-chart.mjs'

const docs = new URL('../docs/', import.meta.url)
for (const [look, svg] of Object.entries(costCharts(readFileSync(new URL('benchmark.md', docs), 'utf8')))) {
  writeFileSync(new URL(`images/costs-${look}.svg`, docs), svg)
}
