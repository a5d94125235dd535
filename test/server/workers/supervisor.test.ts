// How long a worker slot stays empty.
import { expect, it } from 'vitest'
import { nextDelay } from '../../../src/server/workers/supervisor.ts'

it('a worker that dies is replaced after 100 ms, after twice as long each time it goes on, 10 s at most', () => {
  const delays: number[] = []
  for (let delay = 0; delays.length < 9; delays.push(delay)) delay = nextDelay(delay, 500)
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

it('one that served for 30 s begins anew', () => {
  expect(nextDelay(10_000, 29_999)).toBe(10_000)
  expect(nextDelay(10_000, 30_000)).toBe(100)
})
