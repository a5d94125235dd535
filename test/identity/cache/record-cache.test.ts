// Tests that the record cache is bounded, reads a record once, and returns no outdated record after a notification.
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRecordCache } from '../../../src/identity/cache/record-cache.ts'
import { runs } from '../../support/property-runs.ts'

interface Read {
  key: number
  answer(value: { version: number } | undefined): void
  fail(error: Error): void
}

function stage({ most: maxRecords = 100, mostAbsent: maxAbsent = 100 } = {}) {
  const reads: Read[] = []
  let trusted = true
  const results = { hit: 0, miss: 0, bypass: 0 }
  const remembered = createRecordCache<number, { version: number }>({
    feed: { isFresh: () => trusted },
    maxRecords,
    maxAbsent,
    results,
    read: key =>
      new Promise((resolve, reject) => {
        reads.push({ key, answer: resolve, fail: reject })
      }),
  })
  return {
    remembered,
    reads,
    results,
    trust(isTrusted: boolean) {
      trusted = isTrusted
    },
    /**
     * Gets the record of a key. Every read from the store returns `value`.
     * @returns the number of reads from the store that this call caused
     */
    async settle(key: number, value: { version: number } | undefined) {
      const before = reads.length
      const calls = remembered.get(key)
      for (const read of reads.slice(before)) read.answer(value)
      expect(await calls).toEqual(value)
      return reads.length - before
    },
  }
}

const record = { version: 1 }

describe('a cached record', () => {
  it('is read once for 100 concurrent calls and then returned synchronously', async () => {
    const { remembered, reads } = stage()
    const calls = Array.from({ length: 100 }, () => remembered.get(1))
    expect(reads).toHaveLength(1)
    reads[0]?.answer(record)
    expect(await Promise.all(calls)).toEqual(Array(100).fill(record))
    expect(remembered.get(1)).toBe(record)
    expect(reads).toHaveLength(1)
  })

  it('is not evicted by keys without a record, because the cache stores these keys separately', async () => {
    const { remembered, settle } = stage({ most: 2, mostAbsent: 3 })
    await settle(1, record)
    for (let key = 100; key < 200; key += 1) expect(await settle(key, undefined)).toBe(1)
    expect(remembered.get(1)).toBe(record)
    for (const key of [199, 198, 197]) expect(await settle(key, undefined)).toBe(0)
    expect(await settle(100, undefined)).toBe(1)
  })

  it('is read at every call until it exists, if the cache does not store absent keys', async () => {
    const { settle } = stage({ mostAbsent: 0 })
    expect(await settle(1, undefined)).toBe(1)
    expect(await settle(1, record)).toBe(1)
    expect(await settle(1, record)).toBe(0)
  })

  it('is evicted from a full cache if all other records were used more recently', async () => {
    const { settle } = stage({ most: 3 })
    for (const key of [1, 2, 3]) await settle(key, record)
    await settle(1, record)
    await settle(4, record)
    expect(await settle(1, record)).toBe(0)
    expect(await settle(2, record)).toBe(1)
  })

  it('is read again after a failed read, which rejects all waiting calls', async () => {
    const { remembered, reads, settle } = stage()
    const calls = [remembered.get(1), remembered.get(1)]
    reads[0]?.fail(new Error('away'))
    for (const one of calls) await expect(one).rejects.toThrow('away')
    expect(await settle(1, record)).toBe(1)
  })

  it('is read again for every call while the feed is not trusted', async () => {
    const { remembered, reads, trust, settle } = stage()
    await settle(1, record)
    trust(false)
    for (let turn = 0; turn < 3; turn += 1) expect(await settle(1, { version: 2 })).toBe(1)
    trust(true)
    remembered.forgetAll()
    expect(await settle(1, record)).toBe(1)
    expect(reads).toHaveLength(5)
  })

  it('is counted at each call as a hit, a miss or a bypass', async () => {
    const { remembered, results, trust, settle } = stage()
    await settle(1, record)
    await settle(1, record)
    await settle(2, undefined)
    await settle(2, undefined)
    void remembered.get(3)
    void remembered.get(3)
    trust(false)
    await settle(1, record)
    expect(results).toEqual({ hit: 2, miss: 4, bypass: 1 })
  })

  it('while the feed is not trusted, is read only twice for 101 concurrent calls', async () => {
    const { remembered, reads, trust } = stage()
    trust(false)
    const first = remembered.get(1)
    const others = Array.from({ length: 100 }, () => remembered.get(1))
    expect(reads).toHaveLength(1)
    reads[0]?.answer({ version: 1 })
    expect(await first).toEqual({ version: 1 })
    expect(reads).toHaveLength(2)
    reads[1]?.answer({ version: 2 })
    expect(new Set(await Promise.all(others))).toEqual(new Set([{ version: 2 }]))
    expect(reads).toHaveLength(2)
    void remembered.get(1)
    expect(reads).toHaveLength(3)
  })

  it('while the feed is not trusted, is not read again for the calls that wait when a read fails', async () => {
    const { remembered, reads, trust } = stage()
    trust(false)
    const calls = [remembered.get(1), remembered.get(1), remembered.get(1)]
    reads[0]?.fail(new Error('away'))
    for (const one of calls) await expect(one).rejects.toThrow('away')
    expect(reads).toHaveLength(1)
    void remembered.get(1)
    expect(reads).toHaveLength(2)
  })

  it.each([
    ['changes', 'forget'],
    ['may have changed', 'forgetAll'],
  ] as const)(
    'if it %s while it is read, is returned to the calls that wait for this read, but is not cached',
    async (_, forget) => {
      const { remembered, reads } = stage()
      const before = remembered.get(1)
      remembered[forget](1)
      const after = remembered.get(1)
      expect(reads).toHaveLength(2)
      reads[1]?.answer({ version: 2 })
      expect(await after).toEqual({ version: 2 })
      reads[0]?.answer({ version: 1 })
      expect(await before).toEqual({ version: 1 })
      expect(remembered.get(1)).toEqual({ version: 2 })
      remembered[forget](1)
      const absent = remembered.get(1)
      remembered[forget](1)
      reads[2]?.answer(undefined)
      expect(await absent).toBeUndefined()
      expect(remembered.get(1)).toBeInstanceOf(Promise)
    },
  )

  it('is not cached if the feed is no longer trusted when the read ends', async () => {
    const { remembered, reads, trust, settle } = stage()
    const calls = remembered.get(1)
    trust(false)
    reads[0]?.answer(record)
    expect(await calls).toBe(record)
    trust(true)
    expect(await settle(1, record)).toBe(1)
  })

  it('always includes the last change whose notification arrived before the call, whatever the order of events', async () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.constant({ do: 'ask' } as const) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('look' as const), which: fc.nat(9) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(9) }) },
      { weight: 3, arbitrary: fc.constant({ do: 'change' } as const) },
      { weight: 3, arbitrary: fc.constant({ do: 'hear' } as const) },
      { weight: 1, arbitrary: fc.constant({ do: 'lapse' } as const) },
      { weight: 1, arbitrary: fc.constant({ do: 'return' } as const) },
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async steps => {
        /**
         * The current version of the record in the store. `onTheWay` contains the versions whose notifications have not
         * arrived yet.
         */
        let version = 0
        let onTheWay: number[] = []
        let heard = 0
        let isTrusted = true
        /**
         * For each read, the version that the store had when it looked up the record. The result of the read may arrive
         * later.
         */
        const seen: (number | undefined)[] = []
        const isAnswered: boolean[] = []
        const { remembered, reads, trust } = stage()
        const calls: { atLeast: number; value: unknown }[] = []
        const answer = (index: number) => {
          isAnswered[index] = true
          reads[index]?.answer({ version: seen[index] ?? version })
        }
        const open = () => reads.map((_, index) => index).filter(index => !isAnswered[index])
        for (const each of steps) {
          const which = 'which' in each ? open()[each.which] : undefined
          if (each.do === 'ask') {
            calls.push({ atLeast: isTrusted ? heard : version, value: remembered.get(1) })
          } else if (each.do === 'look' && which !== undefined) {
            seen[which] ??= version
          } else if (each.do === 'answer' && which !== undefined) {
            answer(which)
          } else if (each.do === 'change') {
            version += 1
            if (isTrusted) onTheWay.push(version)
          } else if (each.do === 'hear' && onTheWay.length > 0) {
            heard = onTheWay.shift() ?? heard
            remembered.forget(1)
          } else if (each.do === 'lapse') {
            isTrusted = false
            onTheWay = []
            trust(false)
          } else if (each.do === 'return' && !isTrusted) {
            isTrusted = true
            heard = version
            trust(true)
            remembered.forgetAll()
          }
          // Waits until the pending promises have completed. After the step `answer`, the loop does not wait, so the
          // next step runs before these promises complete.
          if (each.do !== 'answer') await setImmediate()
        }
        // The loop repeats, because the end of one read may start another read.
        do {
          for (const index of open()) answer(index)
          await setImmediate()
        } while (open().length > 0)
        for (const { atLeast, value } of calls) {
          expect(((await value) as { version: number }).version).toBeGreaterThanOrEqual(atLeast)
        }
      }),
      { numRuns: runs(1_000) },
    )
  })
})
