// Tests that a call ends at a multiple of 100 ms after its start. So its duration reveals little about the work.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { roundUpDuration } from '../../src/async/round-up-duration.ts'

/** Returns the duration in milliseconds, plus 2 ms because timers may fire up to 2 ms early. */
async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await roundUpDuration(work).catch(() => {})
  return performance.now() - start + 2
}

it.each<[string, number, () => Promise<unknown>]>([
  ['no time', 100, async () => {}],
  ['a part of 100 ms', 100, () => sleep(40)],
  ['a little over 100 ms', 200, () => sleep(110)],
  ['no time and fails', 100, () => Promise.reject(new Error('no'))],
])('if the work takes %s, roundUpDuration ends after %i ms', async (_, expected, work) => {
  // The calls run one after another. If they ran at the same time, one pause of the machine would delay all of them.
  const times: number[] = []
  for (let call = 0; call < 5; call += 1) times.push(await elapsed(work))
  expect(Math.min(...times)).toBeGreaterThanOrEqual(expected)
  expect(Math.min(...times)).toBeLessThan(expected + 90)
})

it('roundUpDuration returns the result of the work, or throws its error', async () => {
  expect(await roundUpDuration(async () => 7)).toBe(7)
  await expect(roundUpDuration(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
})
