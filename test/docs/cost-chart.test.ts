// The README's charts of costs show the figures of docs/benchmark.md.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { costCharts } from '../../scripts/cost-chart.mjs'

const read = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

it.each(['light', 'dark'] as const)('docs/images/costs-%s.svg is what `npm run cost-chart` writes', look => {
  expect(read(`images/costs-${look}.svg`)).toBe(costCharts(read('benchmark.md'))[look])
})
