// `server.workers`: what is refused, however it was written, and the resulting number (CONTRACT §2).
import { describe, expect, it } from 'vitest'
import { configOf, linesOf } from '../reading.ts'

const stores = 'storage: { postgres: postgres://db/x, redis: redis://r }'

describe('server.workers', () => {
  it.each([
    ['2', ''],
    ['auto', ''],
    ['"${N}"', ''],
    ['2', 'storage: { redis: redis://r }'],
    ['auto', 'storage: { redis: { cluster: [a:1] } }'],
    ['2', 'storage: { postgres: "${EMPTY}" , redis: redis://r }'],
  ])('%s is refused on the embedded database, on however many cores: %s', (workers, storage) => {
    const [line, ...more] = linesOf(`server: { workers: ${workers} }\n${storage}`, { N: '3', EMPTY: '' })
    expect(line).toMatch(
      /^1:20 {2}server\.workers {2}cannot be more than 1: the embedded database serves one process/,
    )
    expect(more).toEqual([])
  })

  it('is refused without Redis, and says everything that it needs', () => {
    expect(linesOf('server: { workers: 2 }\nstorage: { postgres: postgres://db/x }')).toEqual([
      '1:20  server.workers  cannot be more than 1: without Redis each process would count rate limits for itself; set storage.redis',
    ])
    expect(linesOf('server: { workers: 2 }')).toEqual([
      '1:20  server.workers  cannot be more than 1: the embedded database serves one process, and without Redis each process would count rate limits for itself; set storage.postgres and storage.redis',
    ])
  })

  it('of 1 needs neither', () => {
    expect(configOf('server: { workers: 1 }').server.workers).toBe(1)
  })

  it.each(['storage: []', 'storage: { postgres: mysql://x, redis: redis://r }'])(
    'concludes nothing from stores that are wrong themselves: %s',
    storage => {
      expect(linesOf(`server: { workers: 2 }\n${storage}`).filter(line => line.includes('workers'))).toEqual(
        [],
      )
    },
  )

  it.each([
    ['1024', 1024],
    ['auto', 4],
    ['"${N}"', 3],
  ])('of %s is %i processes on four cores', (workers, count) => {
    expect(configOf(`server: { workers: ${workers} }\n${stores}`, { N: '3' }).server.workers).toBe(count)
  })

  it.each([
    ['1', 2],
    ['2', 2],
    ['3', 1],
    ['auto', 1],
    ['9', 1],
  ])('of %s shares four cores out: each process computes %i hashes at once', (workers, hashes) => {
    const config = configOf(`server: { workers: ${workers} }\n${stores}`)
    expect(config.auth.hashing.concurrency).toBe(hashes)
  })
})
