// The limiter uses a bounded amount of memory, and locks no client out when the clock is set back.
import { describe, expect, it } from 'vitest'
import { createMemoryRateLimiter } from '../../src/storage/memory-rate-limiter.ts'

describe('the rate limiter in memory', () => {
  const create = (mostKeys: number) => {
    const clock = { time: 1_000_000, now: () => clock.time }
    return { clock, windows: createMemoryRateLimiter({ limit: 1, windowMs: 1_000 }, clock, mostKeys) }
  }

  it('forgets only the oldest key when it is full', () => {
    const { windows } = create(3)
    for (const key of ['a', 'b', 'c', 'd']) windows.consume(key)
    expect(['d', 'c', 'b'].map(key => windows.consume(key).allowed)).toEqual([false, false, false])
    expect(windows.consume('a').allowed).toBe(true)
    expect(windows.consume('b').allowed).toBe(true)
  })

  it('removes ended windows before it forgets an open window', () => {
    const { windows, clock } = create(2)
    windows.consume('old')
    clock.time += 900
    windows.consume('young')
    clock.time += 100
    windows.consume('new')
    expect(windows.consume('young').allowed).toBe(false)
  })

  it('starts a new window when the clock is set back, so no client waits longer than one window', () => {
    const { windows, clock } = create(2)
    windows.consume('key')
    clock.time -= 500_000
    expect(windows.consume('key')).toEqual({ allowed: true, used: 1, resetMs: 1_000 })
  })
})
