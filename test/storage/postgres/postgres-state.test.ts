// If connections to Postgres fail and no query succeeds for a second, Postgres counts as down.
import { beforeEach, describe, expect, it } from 'vitest'
import { StorageError } from '../../../src/storage/database.ts'
import { createPostgresState, type PostgresState } from '../../../src/storage/postgres/postgres-state.ts'

let nowMs: number
let reports: (string | true)[]
let state: PostgresState
beforeEach(() => {
  nowMs = 50_000
  reports = []
  state = createPostgresState({
    now: () => nowMs,
    log: { report: (isUp, reason) => reports.push(isUp || String(reason)), stop() {} },
  })
})

const refused = new StorageError('database: connect ECONNREFUSED 127.0.0.1:5432', undefined, undefined)

/** @param tookMs the time in milliseconds until the query fails */
async function fail(error: unknown, tookMs = 0): Promise<void> {
  let reject: (error: unknown) => void = () => {}
  const work = new Promise<void>((_, fails) => {
    reject = fails
  })
  const observed = state.observe(work)
  nowMs += tookMs
  reject(error)
  await expect(observed).rejects.toBe(error)
}
const succeed = () => state.observe(Promise.resolve())

describe('Postgres', () => {
  it('is reported as down with the error of the driver when connections have failed for 1 s', async () => {
    await fail(refused)
    nowMs += 999
    await fail(refused)
    expect(reports).toEqual([])
    nowMs += 1
    await fail(refused)
    expect(reports).toEqual(['connect ECONNREFUSED 127.0.0.1:5432'])
    await succeed()
    expect(reports.at(-1)).toBe(true)
  })

  it('is reported as down when one query gets no response for 1 s', async () => {
    await fail(refused, 1_500)
    expect(reports).toHaveLength(1)
  })

  it('is reported as up if another query succeeds between the failures', async () => {
    await fail(refused)
    nowMs += 900
    await succeed()
    await fail(refused, 900)
    expect(reports).toEqual([true])
  })

  it.each([
    ['a violated constraint', new StorageError('database: error 23505', '23505', undefined)],
    ['a statement that was too slow', new StorageError('database: canceled (57014)', '57014', undefined)],
    ['an error that is not about the database', new Error('a bug')],
  ])('is not reported as down after %s', async (_, error) => {
    for (let i = 0; i < 3; i += 1) await fail(error, 2_000)
    expect(reports).toEqual([])
  })

  it.each(['57P01', '57P03', '53300', '28P01', '3D000', '25006', '08006'])(
    'is reported as down when the server refuses connections with the SQLSTATE %s',
    async code => {
      await fail(new StorageError('database: refused', code, undefined), 1_000)
      expect(reports).toEqual(['refused'])
    },
  )
})
