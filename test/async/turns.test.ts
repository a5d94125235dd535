// Turns: one task at a time per key, and one outcome for all who waited for what is gone.
import { describe, expect, it } from 'vitest'
import { createTurns } from '../../src/async/turns.ts'

/** Work that ends when it is told to, and the order in which it began. */
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

describe('turns', () => {
  it('run one after the other for one key, in order, and at once for different keys', async () => {
    const { begun, work, end } = tasks()
    const turns = createTurns()
    const all = ['a', 'b', 'c'].map(name => turns.run('one', work(name)))
    const other = turns.run('other', work('x'))
    expect(begun).toEqual(['a', 'x'])
    await end('a')
    expect(begun).toEqual(['a', 'x', 'b'])
    await end('b')
    await end('c')
    await end('x')
    expect(await Promise.all([...all, other])).toEqual(['a', 'b', 'c', 'x'])
    const again = turns.run('one', work('d'))
    await end('d')
    expect(await again).toBe('d')
  })

  it('what is gone is so for those who waited when the run began, and asked for anew by who came later', async () => {
    const { begun, work, end } = tasks()
    const turns = createTurns()
    const first = turns.run('key', work('first'))
    const waited = ['second', 'third', 'fourth'].map(name => turns.run('key', work(name)))
    await end('first')
    const later = turns.run('key', work('later'))
    await end('second', 'gone')
    expect(begun).toEqual(['first', 'second', 'later'])
    await end('later')
    expect(await Promise.all([first, ...waited, later])).toEqual(['first', 'gone', 'gone', 'gone', 'later'])
  })

  it('a failure is that of those who waited when the run began, and of nobody who came later', async () => {
    const { work, end } = tasks()
    const turns = createTurns()
    const first = turns.run('key', work('first'))
    const waited = ['second', 'third'].map(name => turns.run('key', work(name)))
    await end('first')
    const later = turns.run('key', work('later'))
    const settled = Promise.allSettled(waited)
    await end('second', new Error('away'))
    await end('later')
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await Promise.all([first, later])).toEqual(['first', 'later'])
  })
})
