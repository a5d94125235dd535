// What the addresses of `storage` demand of each other.
import { describe, expect, it } from 'vitest'
import { linesOf } from '../reading.ts'

const env = { DATABASE_LISTEN_URL: 'postgres://direct/x' }
const both = 'storage: { postgres: "${DATABASE_URL:-}", postgres_listen: "${DATABASE_LISTEN_URL:-}" }'

describe('storage.postgres_listen', () => {
  it('is refused without the database that it is an address of', () => {
    expect(linesOf(both, env)).toEqual([
      '1:60  storage.postgres_listen  only listens: set storage.postgres, the same database, beside it',
    ])
    expect(linesOf('storage: { postgres_listen: postgres://direct/x }')).toHaveLength(1)
  })

  it('is taken beside it, and empty', () => {
    expect(linesOf(both, { ...env, DATABASE_URL: 'postgres://pooler/x' })).toEqual([])
    expect(linesOf(both)).toEqual([])
  })

  it('concludes nothing from addresses that are wrong themselves', () => {
    for (const wrong of [
      'storage: []',
      'storage: { postgres_listen: mysql://x }',
      'storage: { postgres: mysql://x, postgres_listen: postgres://x/x }',
    ])
      expect(linesOf(wrong).filter(line => line.includes('only listens'))).toEqual([])
  })
})
