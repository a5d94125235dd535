// Checks the delays between the attempts of a delivery.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { retryDelayMs as delayOf } from '../../../src/outbox/retry-delay.ts'
import { retryDelaysMs } from '../../../src/webhooks/sending/outcome.ts'

const hour = 60 * 60_000
const steps = [5_000, 5 * 60_000, 30 * 60_000, ...[2, 5, 10, 14, 20, 24].map(hours => hours * hour)]

const retryDelayMs = (attempts: number, random: number, retryAfterMs: number) =>
  delayOf(retryDelaysMs, attempts, random, retryAfterMs)

describe('the delay after a failed attempt', () => {
  it('follows the schedule of Standard Webhooks and is undefined after the tenth attempt', () => {
    expect(steps.map((_, index) => retryDelayMs(index + 1, 0.5, 0))).toEqual(steps)
    expect(retryDelayMs(10, 0.5, 0)).toBeUndefined()
    expect(retryDelayMs(10, 0.5, 24 * hour)).toBeUndefined()
    expect(retryDelayMs(25, 0.5, 0)).toBeUndefined()
  })

  it('is at most 10 % shorter or longer than the schedule', () => {
    for (const [index, step] of steps.entries()) {
      expect(retryDelayMs(index + 1, 0, 0)).toBe(step * 0.9)
      expect(retryDelayMs(index + 1, 1, 0)).toBe(Math.round(step * 1.1))
    }
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempts, random) => {
          const step = steps[attempts - 1] ?? 0
          const delay = retryDelayMs(attempts, random, 0) ?? 0
          expect(Math.abs(delay - step)).toBeLessThanOrEqual(step / 10)
        },
      ),
    )
  })

  it('is the receiver’s Retry-After if this is longer than the scheduled delay', () => {
    expect(retryDelayMs(1, 0.5, 5_001)).toBe(5_001)
    expect(retryDelayMs(1, 1, 5_001)).toBe(5_500)
    expect(retryDelayMs(1, 0, 24 * hour)).toBe(24 * hour)
    expect(retryDelayMs(9, 1, 24 * hour)).toBe(Math.round(26.4 * hour))
  })
})
