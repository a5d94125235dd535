// The record of a tick, which keeps `process.nextTick` fast: Node says nothing of what it is, so this looks.
import { describe, expect, it } from 'vitest'
import { tickRecord } from '../../src/async/tick-record.ts'

describe('the record of a tick', () => {
  it('is Node’s own, with the callback and the ids of its tick', () => {
    expect(tickRecord).toMatchObject({ callback: expect.any(Function) })
    expect(Object.getOwnPropertySymbols(tickRecord).map(String)).toContain('Symbol(async_id_symbol)')
  })
})
