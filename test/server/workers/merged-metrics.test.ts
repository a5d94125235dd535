// Merged counters never decrease, even if a worker exits.
import { expect, it } from 'vitest'
import { mergedText } from '../../../src/observability/metrics/exposition.ts'
import type { FamilyJson } from '../../../src/observability/metrics/families.ts'
import { createMergedMetrics } from '../../../src/server/workers/merged-metrics.ts'
import { readPage } from '../../support/scrape.ts'

const said = (requests: number, open: number): FamilyJson[] => [
  {
    name: 'requests',
    help: 'r',
    type: 'counter',
    aggregator: 'sum',
    values: [{ labels: {}, value: requests }],
  },
  { name: 'open', help: 'o', type: 'gauge', aggregator: 'sum', values: [{ labels: {}, value: open }] },
]

it('merged metrics keep the counters but not the gauges of a hundred exited workers', async () => {
  const counts = createMergedMetrics()
  const pages: number[] = []
  for (let pid = 1; pid <= 100; pid++) {
    const all = await counts([
      { pid, families: said(10, 5) },
      { pid: 1000, families: said(pid, 1) },
    ])
    const page = readPage(await mergedText(all))
    pages.push(page.value('requests'))
    expect(page.value('open')).toBe(6)
    // The number of merged pages must not grow with the number of exited workers, because each page uses memory.
    expect(all.length).toBeLessThan(15)
  }
  expect(pages).toEqual(Array.from({ length: 100 }, (_, index) => (index + 1) * 11))
})

it('if a worker sends only some metric families, the other families keep their previous values', async () => {
  const counts = createMergedMetrics()
  await counts([{ pid: 1, families: said(10, 5) }])
  const page = readPage(await mergedText(await counts([{ pid: 1, families: said(11, 0).slice(0, 1) }])))
  expect([page.value('requests'), page.value('open')]).toEqual([11, 5])
  const asked = readPage(await mergedText(await counts([{ pid: 1, families: said(12, 4) }])))
  expect([asked.value('requests'), asked.value('open')]).toEqual([12, 4])
})

it('the metrics keep all values of a worker that does not respond, but only the counters of a worker that exited', async () => {
  const counts = createMergedMetrics()
  await counts([{ pid: 1, families: said(10, 5) }])
  const stopped = readPage(await mergedText(await counts([{ pid: 1, families: undefined }])))
  expect([stopped.value('requests'), stopped.value('open')]).toEqual([10, 5])
  const gone = readPage(await mergedText(await counts([{ pid: undefined, families: undefined }])))
  expect([gone.value('requests'), gone.value('open')]).toEqual([10, 0])
})
