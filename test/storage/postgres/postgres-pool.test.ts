// A pool opens at most two connections at the same time. All waiting queries must still succeed.
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openPostgres } from '../../../src/storage/postgres/postgres.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'
import { startStallingRelay } from '../../support/stalling-relay.ts'

describeWithServices('the connections for ten concurrent queries', () => {
  let server: Awaited<ReturnType<typeof postgresDatabase>>
  beforeAll(async () => {
    server = await postgresDatabase()
  })
  afterAll(() => server.close())

  const ten = <T>(work: (index: number) => Promise<T>) =>
    Promise.all(Array.from({ length: 10 }, (_, index) => work(index)))

  it('are opened only two at a time, and all queries succeed when a server that hung responds again', async () => {
    const relay = await startStallingRelay(server.url)
    const database = openPostgres({ url: relay.url, maxConnections: 10, onError: () => {} })
    try {
      relay.stall()
      const answers = ten(index => database.query('select $1::int as index', [index]))
      await expect.poll(() => relay.made).toBe(2)
      await sleep(100)
      expect(relay.made).toBe(2)
      relay.flow()
      expect(await answers).toEqual(Array.from({ length: 10 }, (_, index) => [{ index }]))
    } finally {
      await database.close()
      await relay.close()
    }
  })

  it('are ten if each query runs longer than other queries can wait for a free connection', async () => {
    const database = openPostgres({ url: server.url, maxConnections: 10, onError: () => {} })
    try {
      await ten(() => database.query('select pg_sleep(0.8)'))
      expect(database.poolState()).toMatchObject({ total: 10, waiting: 0 })
    } finally {
      await database.close()
    }
  })
})
