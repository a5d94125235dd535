// Tests that a request keeps the ID of its client if the ID is safe, and otherwise gets a new unique ID.
import { expect, it } from 'vitest'
import { createRequestIdFor } from '../../../src/gate/parsing/request-ids.ts'

const bytes = (fill: number) => (size: number) => Buffer.alloc(size, fill)

it('a request keeps the ID of its client if the ID is safe, and otherwise gets a new ID', () => {
  const idFor = createRequestIdFor(bytes(1))
  expect(idFor('mine-1')).toBe('mine-1')
  const made = [undefined, '', 'a b', 'a'.repeat(129), '<a>'].map(idFor)
  expect(new Set(made).size).toBe(5)
  // New IDs contain only safe characters. So if a second gateway receives such an ID, it keeps the ID.
  expect(made.map(createRequestIdFor(bytes(2)))).toEqual(made)
})

it('new IDs start with a prefix of 96 random bits, which is different in each process', () => {
  const [one, other] = [1, 2].map(fill => createRequestIdFor(bytes(fill))(undefined))
  expect(one).not.toBe(other)
  expect(one?.split('-')[0]).toBe(Buffer.alloc(12, 1).toString('base64url'))
})
