// Tests that the pages and charts of the benchmark show the values of docs/dev/benchmark.json.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { alternative, generated, published } from '../../bench/publish.ts'
import { readRecording } from '../../bench/recording.ts'

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
const { results, bars, charts, words } = published(readRecording())

describe('the recorded run of the benchmark', () => {
  it('is in the tables of docs/benchmark.md, with medians and quartiles', () => {
    expect(generated.exec(read('docs/benchmark.md'))?.[0]).toBe(results)
  })

  it('is in the table of target values in docs/dev/benchmark-log.md', () => {
    expect(generated.exec(read('docs/dev/benchmark-log.md'))?.[0]).toBe(bars)
  })

  it.each(['light', 'dark'] as const)('is in the chart docs/images/costs-%s.svg', look => {
    expect(read(`docs/images/costs-${look}.svg`)).toBe(charts[look])
  })

  it('is in the alternative text of the chart in the README', () => {
    expect(alternative.exec(read('README.md'))?.[0]).toBe(words)
  })
})
