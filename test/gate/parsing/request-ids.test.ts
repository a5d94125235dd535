// Request IDs: the client's ID if it is safe, otherwise an ID that no other process creates.
import { expect, it } from 'vitest'
import { createRequestIdFor } from '../../../src/gate/parsing/request-ids.ts'

const bytes = (fill: number) => (size: number) => Buffer.alloc(size, fill)

it('a request keeps a safe ID and gets a new ID otherwise', () => {
  const idFor = createRequestIdFor(bytes(1))
  expect(idFor('mine-1')).toBe('mine-1')
  const made = [undefined, '', 'a b', 'a'.repeat(129), '<a>'].map(idFor)
  expect(new Set(made).size).toBe(5)
  // A new ID is safe, so the next gateway keeps it.
  expect(made.map(createRequestIdFor(bytes(2)))).toEqual(made)
})

it('IDs of two processes start with different prefixes of 96 random bits', () => {
  const [one, other] = [1, 2].map(fill => createRequestIdFor(bytes(fill))(undefined))
  expect(one).not.toBe(other)
  expect(one?.split('-')[0]).toBe(Buffer.alloc(12, 1).toString('base64url'))
})
