// The ids of requests: a client's own where it is safe, else one that no other process makes.
import { expect, it } from 'vitest'
import { createRequestIdFor } from '../../../src/gate/parsing/request-ids.ts'

const bytes = (fill: number) => (size: number) => Buffer.alloc(size, fill)

it('a request keeps its own id where that is safe, and is given a new one where it is not', () => {
  const idFor = createRequestIdFor(bytes(1))
  expect(idFor('mine-1')).toBe('mine-1')
  const made = [undefined, '', 'a b', 'a'.repeat(129), '<a>'].map(idFor)
  expect(new Set(made).size).toBe(5)
  // Safe itself: the next gateway on the way keeps it.
  expect(made.map(createRequestIdFor(bytes(2)))).toEqual(made)
})

it('ids of two processes differ, of 96 random bits each', () => {
  const [one, other] = [1, 2].map(fill => createRequestIdFor(bytes(fill))(undefined))
  expect(one).not.toBe(other)
  expect(one?.split('-')[0]).toBe(Buffer.alloc(12, 1).toString('base64url'))
})
