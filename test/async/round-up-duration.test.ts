// Work that ends only at whole tenths of a second after its start.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { roundUpDuration } from '../../src/async/round-up-duration.ts'

/** Timers fire up to two milliseconds early. */
async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await roundUpDuration(work).catch(() => {})
  return performance.now() - start + 2
}

it.each<[string, number, () => Promise<unknown>]>([
  ['none', 100, async () => {}],
  ['a part of a step', 100, () => sleep(40)],
  ['a step and a part', 200, () => sleep(110)],
  ['none, and fails', 100, () => Promise.reject(new Error('no'))],
])('work that takes %s ends after %i ms', async (_, expected, work) => {
  const times = await Promise.all(Array.from({ length: 5 }, () => elapsed(work)))
  expect(Math.min(...times)).toBeGreaterThanOrEqual(expected)
  expect(Math.min(...times)).toBeLessThan(expected + 90)
})

it('has the outcome of the work', async () => {
  expect(await roundUpDuration(async () => 7)).toBe(7)
  await expect(roundUpDuration(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
})
