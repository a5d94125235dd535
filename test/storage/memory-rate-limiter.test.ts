// The limiter's memory stays bounded, and no state of the clock shuts anybody out.
import { describe, expect, it } from 'vitest'
import { createMemoryWindows } from '../../src/storage/memory-rate-limiter.ts'

describe('windows in memory', () => {
  const create = (mostKeys: number) => {
    const clock = { time: 1_000_000, now: () => clock.time }
    return { clock, windows: createMemoryWindows({ limit: 1, window: 1_000 }, clock, mostKeys) }
  }

  it('forgets the oldest key where there is room for no more, and no other', () => {
    const { windows } = create(3)
    for (const key of ['a', 'b', 'c', 'd']) windows.take(key)
    expect(['d', 'c', 'b'].map(key => windows.take(key).allowed)).toEqual([false, false, false])
    expect(windows.take('a').allowed).toBe(true)
    expect(windows.take('b').allowed).toBe(true)
  })

  it('makes room by the windows that have ended, before it forgets one that has not', () => {
    const { windows, clock } = create(2)
    windows.take('old')
    clock.time += 900
    windows.take('young')
    clock.time += 100
    windows.take('new')
    expect(windows.take('young').allowed).toBe(false)
  })

  it('starts anew where the clock was set back, so that nobody waits for longer than a window', () => {
    const { windows, clock } = create(2)
    windows.take('key')
    clock.time -= 500_000
    expect(windows.take('key')).toEqual({ allowed: true, used: 1, resetMs: 1_000 })
  })
})
