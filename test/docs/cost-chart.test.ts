// The README's charts of costs, and the words for who cannot see them, have the figures of docs/benchmark.md.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { costCharts } from '../../scripts/cost-chart.mjs'

const read = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

describe('the charts of costs', () => {
  it.each(['light', 'dark'] as const)(
    'docs/images/costs-%s.svg is what `npm run cost-chart` writes',
    look => {
      expect(read(`images/costs-${look}.svg`)).toBe(costCharts(read('benchmark.md'))[look])
    },
  )

  it('are told in words with the same medians', () => {
    const medians = [...costCharts(read('benchmark.md')).light.matchAll(/>(\d+\.\d\d)</g)].map(
      ([, median]) => median,
    )
    const [, words = ''] = /costs-light\.svg" alt="([^"]+)"/.exec(read('../README.md')) ?? []
    expect(words.match(/\d+\.\d\d/g)).toEqual(medians.filter(median => median !== '1.00'))
  })
})
