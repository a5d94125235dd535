// Response header names are interned by their bytes: none may ever be taken for another.
import { describe, expect, it } from 'vitest'
import { internHeaderName } from '../../src/upstream/response-head.ts'

const read = (name: string) => internHeaderName(Buffer.from(name, 'latin1'))

describe('the name of a field', () => {
  it('is read as it was sent, each time', () => {
    for (let turn = 0; turn < 2; turn += 1) {
      expect(read('ETag')).toMatchObject({ name: 'ETag', lower: 'etag', isDropped: false })
      expect(read('etag')).toMatchObject({ name: 'etag', lower: 'etag', isDropped: false })
      expect(read('Keep-Alive')).toMatchObject({ name: 'Keep-Alive', lower: 'keep-alive', isDropped: true })
      expect(read('Proxy-Status')).toMatchObject({ lower: 'proxy-status', isDropped: true })
      expect(read('X-Peage-Error').isDropped).toBe(true)
      expect(read('\xe9')).toMatchObject({ name: '\xe9' })
    }
  })

  it('is never another’s, however many there are and whichever share a place', () => {
    const names = Array.from({ length: 5_000 }, (_, at) => `x-${at.toString(36)}-${at % 7}`)
    for (const name of [...names, ...names.reverse()]) expect(read(name).name).toBe(name)
  })

  it('may be longer than those that are remembered', () => {
    const name = `X-${'a'.repeat(200)}`
    for (let turn = 0; turn < 2; turn += 1) expect(read(name)).toMatchObject({ name, isDropped: false })
  })

  it('does not change with the bytes that it was read from', () => {
    const bytes = Buffer.from('x-first')
    internHeaderName(bytes)
    bytes.write('x-other')
    expect(read('x-first').name).toBe('x-first')
    expect(read('x-other').name).toBe('x-other')
  })
})
