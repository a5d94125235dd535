import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createLastUsed } from '../../../src/identity/api-keys/last-used.ts'
import { StorageError } from '../../../src/storage/database.ts'
import { type MovableClock, movableClock } from '../../accounts/setup.ts'

let clock: MovableClock
const start = () => clock.now()
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  clock = movableClock()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Advances the clock and the timers together. */
async function pass(milliseconds: number): Promise<void> {
  clock.advance(milliseconds)
  await vi.advanceTimersByTimeAsync(milliseconds)
}

function recorder() {
  const recordUse = vi.fn(async (_keyId: string, _at: Date) => {})
  const onError = vi.fn()
  const lastUsed = createLastUsed({ store: { recordUse }, clock, onError })
  return {
    touch: recordUse,
    onError,
    lastUsed,
    writes: () => recordUse.mock.calls.map(([keyId, at]) => [keyId, at.getTime()]),
  }
}

describe('the last use of an API key', () => {
  it('is written immediately if the key was not used within the last second', async () => {
    const { lastUsed, writes } = recorder()
    const first = start()
    lastUsed.record('1')
    expect(writes()).toEqual([['1', first]])
    await pass(1000)
    lastUsed.record('1')
    expect(writes()).toEqual([
      ['1', first],
      ['1', first + 1000],
    ])
  })

  it('is written at most once a second, with the time of the latest use', async () => {
    const { lastUsed, writes } = recorder()
    const first = start()
    for (let i = 0; i < 100; i += 1) {
      lastUsed.record('1')
      await pass(25)
    }
    await pass(5000)
    expect(writes()).toEqual([
      ['1', first],
      ['1', first + 975],
      ['1', first + 1975],
      ['1', first + 2475],
    ])
  })

  it('is written for each key without waiting for other keys', () => {
    const { lastUsed, writes } = recorder()
    lastUsed.record('1')
    lastUsed.record('2')
    expect(writes().map(([keyId]) => keyId)).toEqual(['1', '2'])
  })

  it('is written immediately by a flush, which waits until all writes have ended', async () => {
    const { lastUsed, touch, writes } = recorder()
    const first = start()
    let ended = 0
    touch.mockImplementation(async () => {
      await new Promise(resolve => setImmediate(resolve))
      ended += 1
    })
    lastUsed.record('1')
    await pass(10)
    lastUsed.record('1')
    await lastUsed.flush()
    expect(writes()).toEqual([
      ['1', first],
      ['1', first + 10],
    ])
    expect(ended).toBe(2)
  })

  it('causes a call of onError if it cannot be written, and the next use is still written', async () => {
    const { lastUsed, touch, onError, writes } = recorder()
    const failure = new StorageError('away', undefined, undefined)
    touch.mockRejectedValueOnce(failure)
    lastUsed.record('1')
    await lastUsed.flush()
    expect(onError).toHaveBeenCalledWith(failure)
    await pass(1000)
    lastUsed.record('1')
    expect(writes()).toHaveLength(2)
  })
})
