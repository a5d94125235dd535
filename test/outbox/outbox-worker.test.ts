// The outbox worker sends stored rows. The tests cover its polls, the reports about a failed store, and its stop.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { type OutboxWorker, startOutboxWorker } from '../../src/outbox/outbox-worker.ts'

/**
 * A timeout of 1 s. The worker polls every second anyway. An earlier poll is caused by a call of wake() or by room for
 * more rows.
 */
const soon = { timeout: 1_000, interval: 10 }

const running: OutboxWorker[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(each => each.stop(0)))
})

/**
 * Starts a worker that leases rows from `due` and handles at most two rows at a time. If `state.failing` is true,
 * leasing fails.
 */
function work(
  due: string[],
  attempt: (row: string, stopping: AbortSignal) => Promise<void> = async () => {},
) {
  const state = { polls: 0, failing: false, errors: [] as unknown[], attempted: [] as string[] }
  const worker = startOutboxWorker<string>({
    lease: [
      async now => {
        state.polls += 1
        if (state.failing) throw new Error('down')
        return due.splice(0, 2 - now)
      },
    ],
    hasRoom: now => now < 2,
    async attempt(row, stopping) {
      state.attempted.push(row)
      await attempt(row, stopping)
    },
    onError: error => state.errors.push(error),
  })
  running.push(worker)
  return { worker, state }
}

it('the worker leases more due rows when it has room, and many calls of wake() cause only a few polls', async () => {
  const due = ['a', 'b', 'c', 'd', 'e']
  const { worker, state } = work(due)
  worker.wake()
  await expect.poll(() => state.attempted, soon).toEqual(['a', 'b', 'c', 'd', 'e'])
  const { polls } = state
  for (let n = 0; n < 100; n += 1) worker.wake()
  await sleep(130)
  // Polls are at least 50 ms apart, however often the worker is woken.
  expect(state.polls - polls).toBeLessThanOrEqual(5)
})

it('without a call of wake(), the worker polls about every second, to find rows that other processes stored', async () => {
  const { state } = work(['a'])
  await expect.poll(() => state.attempted, { timeout: 1_500, interval: 10 }).toEqual(['a'])
})

it('the worker reports a failing store once, and once more if the store fails again after a success', async () => {
  const { worker, state } = work([])
  state.failing = true
  const poll = async (from = state.polls) => {
    worker.wake()
    await expect.poll(() => state.polls, soon).toBeGreaterThan(from)
  }
  await poll()
  await poll()
  expect(state.errors).toHaveLength(1)
  state.failing = false
  await poll()
  state.failing = true
  await poll()
  expect(state.errors).toHaveLength(2)
})

it('the worker continues with other rows if the result of one row cannot be recorded', async () => {
  const { worker, state } = work(['a', 'b', 'c'], async row => {
    if (row === 'a') throw new Error('not recorded')
  })
  worker.wake()
  await expect.poll(() => state.attempted, soon).toEqual(['a', 'b', 'c'])
  expect(state.errors).toHaveLength(1)
})

it('a stopping worker leases no more rows, waits for running attempts, and aborts them after the grace period', async () => {
  const ended: string[] = []
  const due = ['quick', 'hanging', 'late']
  const { worker, state } = work(due, async (row, stopping) => {
    await new Promise<void>(resolve => {
      if (row === 'quick') setTimeout(resolve, 30)
      else stopping.addEventListener('abort', () => resolve(), { once: true })
    })
    ended.push(row)
  })
  worker.wake()
  await expect.poll(() => state.attempted, soon).toHaveLength(2)
  await worker.stop(100)
  expect(ended).toEqual(['quick', 'hanging'])
  worker.wake()
  await sleep(80)
  expect([state.attempted, due]).toEqual([['quick', 'hanging'], ['late']])
})
