// Long work in steps: done all at once, or in slices that leave the event loop to those who are served meanwhile.
import { describe, expect, it } from 'vitest'
import { atOnce, inSlices, mapSteps, type Steps } from '../../src/async/steps.ts'

function spin(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** @param onStep receives how long each step took */
function* work(steps: number, onStep: (ms: number) => void): Steps<string> {
  for (let step = 0; step < steps; step += 1) {
    const begun = performance.now()
    spin(1)
    onStep(performance.now() - begun)
    yield
  }
  return 'done'
}

describe('work in steps', () => {
  it('has one result, at once or in slices', async () => {
    const double = () => mapSteps([1, 2, 3], (item, index) => item * 2 + index)
    expect(atOnce(double())).toEqual([2, 5, 8])
    expect(await inSlices(double())).toEqual([2, 5, 8])
  })

  it('throws what a step throws', async () => {
    const failing = () =>
      mapSteps([1], () => {
        throw new Error('step')
      })
    expect(() => atOnce(failing())).toThrow('step')
    await expect(inSlices(failing())).rejects.toThrow('step')
  })

  it('takes at most a third of the time from an event loop that has others to serve', async () => {
    let isOver = false
    let turns = 0
    const serve = () => {
      spin(0.5)
      turns += 1
      if (!isOver) setImmediate(serve)
    }
    setImmediate(serve)
    let worked = 0
    const begun = performance.now()
    expect(
      await inSlices(
        work(100, ms => {
          worked += ms
        }),
      ),
    ).toBe('done')
    isOver = true
    expect(worked).toBeLessThan((performance.now() - begun) / 3)
    expect(turns).toBeGreaterThan(100)
  })
})
