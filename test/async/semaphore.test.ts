import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSemaphore } from '../../src/async/semaphore.ts'
import { serviceUnavailable } from '../../src/refusals/refusal.ts'
import { outcome, tally } from '../accounts/setup.ts'
import { refusalOf } from '../support/refusals.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Creates a task that ends when `end` is called. */
function heldTask() {
  let end = () => {}
  const promise = new Promise<void>(resolve => {
    end = resolve
  })
  const task = vi.fn(() => promise)
  return { task, end }
}

describe('a semaphore', () => {
  it('never runs more tasks than allowed, and runs waiting tasks in order', async () => {
    const work = createSemaphore({ concurrency: 2, queue: 10, wait: 1000 }, serviceUnavailable)
    const tasks = Array.from({ length: 6 }, heldTask)
    const runs = tasks.map(({ task }) => work.run(task))
    const started = () => tasks.map(({ task }) => task.mock.calls.length)
    expect(started()).toEqual([1, 1, 0, 0, 0, 0])
    for (const [i, { end }] of tasks.entries()) {
      end()
      await runs[i]
      expect(started()).toEqual(tasks.map((_, j) => (j <= i + 2 ? 1 : 0)))
    }
  })

  it('refuses a task immediately with 503 and Retry-After: 1 if the queue is full', async () => {
    const work = createSemaphore({ concurrency: 1, queue: 1, wait: 1000 }, serviceUnavailable)
    const [first, second] = [heldTask(), heldTask()]
    const runs = [work.run(first.task), work.run(second.task)]
    expect(await refusalOf(work.run(async () => {}))).toMatchObject({
      code: 'service_unavailable',
      status: 503,
      fields: expect.arrayContaining(['retry-after', '1']),
    })
    first.end()
    second.end()
    await Promise.all(runs)
  })

  it('refuses tasks that wait too long, and frees their places in the queue', async () => {
    const work = createSemaphore({ concurrency: 1, queue: 2, wait: 1000 }, serviceUnavailable)
    const first = heldTask()
    const late = vi.fn(async () => {})
    const runs = [work.run(first.task), outcome(work.run(late)), outcome(work.run(late))]
    await vi.advanceTimersByTimeAsync(1000)
    expect(tally(await Promise.all(runs.slice(1) as Promise<string>[]))).toEqual({ service_unavailable: 2 })
    expect(late).not.toHaveBeenCalled()
    const next = work.run(async () => 'served')
    first.end()
    expect(await next).toBe('served')
  })

  it('releases the slot of a task that fails', async () => {
    const work = createSemaphore({ concurrency: 1, queue: 0, wait: 0 }, serviceUnavailable)
    await expect(work.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await work.run(async () => 'served')).toBe('served')
  })
})
