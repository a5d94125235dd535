// The log shows when a state goes up or down. A state causes at most one log line in 10 s, and its latest value is
// logged within 10 s.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createStateLog, type StateLog } from '../../src/observability/state-log.ts'

let lines: [isUp: boolean, reason: string | undefined][]
let log: StateLog
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  lines = []
  log = createStateLog({ write: (...line) => lines.push(line), now: () => performance.now() })
})
afterEach(() => {
  log.stop()
  vi.useRealTimers()
})

describe('a state log', () => {
  it('writes "down" with the reason at once, and delays a following "up" until 10 s after that line', () => {
    log.report(true)
    expect(lines).toEqual([])
    log.report(false, 'refused')
    log.report(false, 'timeout')
    expect(lines).toEqual([[false, 'refused']])
    vi.advanceTimersByTime(2_000)
    log.report(true)
    vi.advanceTimersByTime(7_999)
    expect(lines).toHaveLength(1)
    vi.advanceTimersByTime(1)
    expect(lines).toEqual([
      [false, 'refused'],
      [true, undefined],
    ])
  })

  it('writes a change at once if the last line is at least 10 s old', () => {
    log.report(false, 'refused')
    vi.advanceTimersByTime(10_000)
    log.report(true)
    expect(lines).toHaveLength(2)
  })

  it('writes at most one line in 10 s if the state changes often, and always writes the final state', () => {
    for (let i = 0; i < 100; i += 1) {
      log.report(i % 2 === 1, 'refused')
      vi.advanceTimersByTime(300)
    }
    // The lines were written at 0, 10, 20 and 30 s.
    expect(lines).toHaveLength(4)
    log.report(false, 'the last')
    vi.advanceTimersByTime(10_000)
    expect(lines.at(-1)?.[0]).toBe(false)
    log.report(true)
    vi.advanceTimersByTime(10_000)
    expect(lines.at(-1)).toEqual([true, undefined])
  })

  it('writes no second line if the state has changed back before the 10 s end', () => {
    log.report(false, 'refused')
    log.report(true)
    log.report(false, 'again')
    vi.advanceTimersByTime(60_000)
    expect(lines).toEqual([[false, 'refused']])
  })

  it('writes nothing after stop() is called', () => {
    log.report(false, 'refused')
    log.report(true)
    log.stop()
    vi.advanceTimersByTime(60_000)
    log.report(true)
    expect(lines).toHaveLength(1)
  })
})
