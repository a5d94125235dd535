// Tests which calls share a batch, which calls wait, and which calls a failure affects.
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createBatches } from '../../src/async/batches.ts'

interface Rules {
  maxItems?: number
  maxWaitMs?: number
  areAlike?(first: number, later: number): boolean
}

function recorded({ maxItems = 100, maxWaitMs = 1_000, areAlike = () => true }: Rules = {}) {
  const batches: { items: readonly number[]; end(): void; fail(error: Error): void }[] = []
  const add = createBatches({
    maxItems,
    maxWaitMs,
    areAlike,
    run: (items: readonly number[]) =>
      new Promise<number[]>((resolve, reject) => {
        batches.push({ items, end: () => resolve(items.map(item => item * 10)), fail: reject })
      }),
  })
  const sizes = () => batches.map(({ items }) => items.length)
  return { add, batches, sizes }
}

/** Creates a record and runs a batch with several calls. The next call then opens a batch that later calls can join. */
async function recordedUnderLoad(rules?: Rules) {
  const record = recorded(rules)
  const answers = [0, 0, 0].map(record.add)
  while (record.batches.length > 0 || answers.length > 0) {
    record.batches.shift()?.end()
    await turn()
    if (record.batches.length === 0) await Promise.all(answers.splice(0))
  }
  return record
}

/** Waits for two turns of the event loop. After that, a scheduled batch has started. */
const turn = async () => {
  for (let turns = 0; turns < 2; turns += 1) await new Promise(resolve => setImmediate(resolve))
}

describe('batches', () => {
  it('a single call starts a batch immediately, even after other single calls', async () => {
    const { add, batches, sizes } = recorded()
    for (const call of [0, 1, 2]) {
      const answer = add(call)
      expect(sizes()).toHaveLength(call + 1)
      batches[call]?.end()
      expect(await answer).toBe(call * 10)
      await turn()
    }
  })

  it('if a batch starts and ends in one turn of the event loop, later calls in this turn share a batch', async () => {
    const { add, batches } = recorded()
    const first = add(0)
    batches[0]?.end()
    await first
    const later = [add(1), add(2)]
    expect(batches).toHaveLength(1)
    await turn()
    expect(batches.map(({ items }) => items)).toEqual([[0], [1, 2]])
    batches[1]?.end()
    expect(await Promise.all(later)).toEqual([10, 20])
  })

  it('after a batch with several calls, all calls made in one turn of the event loop share a batch', async () => {
    const { add, batches } = await recordedUnderLoad()
    const answers = [add(1)]
    await Promise.resolve()
    answers.push(add(2))
    expect(batches).toHaveLength(0)
    await turn()
    expect(batches.map(({ items }) => items)).toEqual([[1, 2]])
    batches[0]?.end()
    expect(await Promise.all(answers)).toEqual([10, 20])
  })

  it('calls that arrive while a batch runs share the next batch, in order', async () => {
    const { add, batches } = recorded()
    const first = add(1)
    await turn()
    const later = [add(2), add(3)]
    await turn()
    later.push(add(4))
    await turn()
    expect(batches).toHaveLength(1)
    batches[0]?.end()
    expect(await first).toBe(10)
    await turn()
    expect(batches.map(({ items }) => items)).toEqual([[1], [2, 3, 4]])
    batches[1]?.end()
    expect(await Promise.all(later)).toEqual([20, 30, 40])
  })

  it('a batch has at most the allowed number of items', async () => {
    const { add, batches, sizes } = await recordedUnderLoad({ maxItems: 2 })
    const answers = [1, 2, 3, 4, 5].map(add)
    await turn()
    expect(sizes()).toEqual([2])
    batches[0]?.end()
    await turn()
    batches[1]?.end()
    await turn()
    batches[2]?.end()
    expect(await Promise.all(answers)).toEqual([10, 20, 30, 40, 50])
    expect(sizes()).toEqual([2, 2, 1])
  })

  it('calls that must not share a batch run in separate batches, in order', async () => {
    const { add, batches } = await recordedUnderLoad({ areAlike: (first, later) => first % 2 === later % 2 })
    const answers = [1, 3, 2, 5].map(add)
    for (let batch = 0; batch < 3; batch += 1) {
      await turn()
      batches[batch]?.end()
    }
    expect(await Promise.all(answers)).toEqual([10, 30, 20, 50])
    expect(batches.map(({ items }) => items)).toEqual([[1, 3], [2], [5]])
  })

  it('if a batch runs longer than maxWaitMs, the next batch starts, and the end of the slow batch does not start a third batch', async () => {
    const { add, batches, sizes } = recorded({ maxWaitMs: 20 })
    const slow = add(1)
    await turn()
    const next = add(2)
    await sleep(40)
    expect(sizes()).toEqual([1, 1])
    const waiting = add(3)
    batches[0]?.end()
    expect(await slow).toBe(10)
    await turn()
    expect(sizes()).toEqual([1, 1])
    batches[1]?.end()
    expect(await next).toBe(20)
    await turn()
    expect(sizes()).toEqual([1, 1, 1])
    batches[2]?.end()
    expect(await waiting).toBe(30)
  })

  it('if a batch fails, only the calls in this batch are rejected', async () => {
    const { add, batches } = await recordedUnderLoad()
    const failing = [add(1), add(2)]
    await turn()
    const next = add(3)
    batches[0]?.fail(new Error('lost'))
    for (const answer of failing) await expect(answer).rejects.toThrow('lost')
    await turn()
    batches[1]?.end()
    expect(await next).toBe(30)
  })
})
