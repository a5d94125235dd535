// Tests the date of the current UTC day, and the time until this day ends.
import { describe, expect, it } from 'vitest'
import { dayAfterEndSeconds, periodEndMs, secondsToMidnight, utcDay } from '../../src/usage/utc-day.ts'

const at = (text: string) => Date.parse(text)

describe('the UTC day', () => {
  it('changes only at midnight UTC', () => {
    expect(utcDay(at('2024-02-28T23:59:59.999Z'))).toBe('2024-02-28')
    expect(utcDay(at('2024-02-29T00:00:00.000Z'))).toBe('2024-02-29')
    expect(utcDay(at('2024-03-01T01:00:00+02:00'))).toBe('2024-02-29')
  })

  it('has at least one remaining second, because the remaining seconds are rounded up', () => {
    expect(secondsToMidnight(at('2024-02-29T00:00:00.000Z'))).toBe(86_400)
    expect(secondsToMidnight(at('2024-02-29T00:00:00.001Z'))).toBe(86_400)
    expect(secondsToMidnight(at('2024-02-29T23:59:58.999Z'))).toBe(2)
    expect(secondsToMidnight(at('2024-02-29T23:59:59.000Z'))).toBe(1)
    expect(secondsToMidnight(at('2024-02-29T23:59:59.999Z'))).toBe(1)
  })

  it('ends when the next day starts', () => {
    for (const text of ['2024-02-29T00:00:00.000Z', '2024-02-29T23:59:59.999Z']) {
      expect(new Date(periodEndMs('day', at(text)))).toEqual(new Date('2024-03-01T00:00:00Z'))
    }
  })

  it('starts 48 hours before the next day ends', () => {
    expect(dayAfterEndSeconds('2024-02-28')).toBe(at('2024-03-01T00:00:00Z') / 1000)
  })
})
