// Tests that only one task per key runs at a time, and that the waiting tasks of this key can share its outcome.
import { describe, expect, it } from 'vitest'
import { createCoalescingQueue } from '../../src/async/coalescing-queue.ts'

/** Creates tasks that end when the test calls `end`, and records the order in which they start. */
function tasks() {
  const begun: string[] = []
  const ends = new Map<string, (outcome: string | Error) => void>()
  return {
    begun,
    work: (name: string) => () => {
      begun.push(name)
      return new Promise<string>((resolve, reject) => {
        ends.set(name, outcome => (outcome instanceof Error ? reject(outcome) : resolve(outcome)))
      })
    },
    async end(name: string, outcome: string | Error = name) {
      ends.get(name)?.(outcome)
      await new Promise(resolve => setImmediate(resolve))
    },
  }
}

describe('the coalescing queue', () => {
  it('runs tasks with the same key one after the other, and tasks with different keys at the same time', async () => {
    const { begun, work, end } = tasks()
    const queue = createCoalescingQueue<string>(error => (error as Error).message === 'away')
    const all = ['a', 'b', 'c'].map(name => queue.run('one', work(name)))
    const other = queue.run('other', work('x'))
    expect(begun).toEqual(['a', 'x'])
    await end('a')
    expect(begun).toEqual(['a', 'x', 'b'])
    await end('b')
    await end('c')
    await end('x')
    expect(await Promise.all([...all, other])).toEqual(['a', 'b', 'c', 'x'])
    const again = queue.run('one', work('d'))
    await end('d')
    expect(await again).toBe('d')
  })

  it('gives the result "gone" of a task to all tasks that were waiting when this task started, but not to later tasks', async () => {
    const { begun, work, end } = tasks()
    const queue = createCoalescingQueue<string>(error => (error as Error).message === 'away')
    const first = queue.run('key', work('first'))
    const waited = ['second', 'third', 'fourth'].map(name => queue.run('key', work(name)))
    await end('first')
    const later = queue.run('key', work('later'))
    await end('second', 'gone')
    expect(begun).toEqual(['first', 'second', 'later'])
    await end('later')
    expect(await Promise.all([first, ...waited, later])).toEqual(['first', 'gone', 'gone', 'gone', 'later'])
  })

  it('fails all waiting tasks if a task fails with an error that applies to all tasks', async () => {
    const { begun, work, end } = tasks()
    const queue = createCoalescingQueue<string>(error => (error as Error).message === 'away')
    const all = Promise.allSettled(['first', 'second', 'third'].map(name => queue.run('key', work(name))))
    await end('first', new Error('away'))
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(begun).toEqual(['first'])
    const later = queue.run('key', work('later'))
    await end('later')
    expect(await later).toBe('later')
  })

  it('fails only the failed task if its error does not apply to all tasks', async () => {
    const { work, end } = tasks()
    const queue = createCoalescingQueue<string>(error => (error as Error).message === 'away')
    const all = Promise.allSettled(['first', 'second'].map(name => queue.run('key', work(name))))
    await end('first', new Error('refused'))
    await end('second')
    expect((await all).map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  })
})
