// A driver's error becomes a StorageError that describes the failure and leaks no value.
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { StorageError } from '../../src/storage/database.ts'
import { toStorageError } from '../../src/storage/driver-error.ts'

describe('a driver’s error', () => {
  it('keeps its message if errors of its SQLSTATE class contain no values', () => {
    const error = toStorageError(
      Object.assign(new Error('relation "nowhere" does not exist'), { code: '42P01' }),
    )
    expect(error).toMatchObject({
      code: '42P01',
      message: 'database: relation "nowhere" does not exist (42P01)',
    })
  })

  it('keeps only the code and the constraint if its message may contain a value', () => {
    const thrown = Object.assign(new Error('secret'), {
      code: '23505',
      constraint: 'users_email_key',
      detail: 'Key (email)=(secret) already exists.',
      params: ['secret'],
    })
    const error = toStorageError(thrown)
    expect(error).toMatchObject({ code: '23505', message: 'database: error 23505 (users_email_key)' })
    expect(inspect(error, { depth: null, showHidden: true })).not.toContain('secret')
  })

  it.each(['EPIPE', 'ECONNREFUSED', 'ERR_INVALID_URL'])(
    'with the code %s from Node has no SQLSTATE',
    code => {
      const error = toStorageError(Object.assign(new AggregateError([]), { code }))
      expect(error.code).toBeUndefined()
      expect(error.message).toContain(code)
    },
  )

  it.each([undefined, null, 'text', 7, {}, new Error('')])(
    'becomes a StorageError even if the thrown value is %s',
    thrown => {
      expect(toStorageError(thrown)).toMatchObject({ name: 'StorageError', code: undefined })
    },
  )

  it('is not wrapped twice', () => {
    const error = new StorageError('no', '40001', undefined)
    expect(toStorageError(error)).toBe(error)
  })
})
