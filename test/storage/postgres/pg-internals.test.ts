// Péage depends on private parts of pg. This test fails if one of them changes. See also postgres-pool.test.ts.
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { withTimeout } from '../../../src/storage/postgres/pg-internals.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'

describeWithServices('the timeout of one statement', () => {
  it('ends the statement before the longer timeout of the connection expires', async () => {
    const database = await postgresDatabase()
    const client = new Client({ connectionString: database.url, query_timeout: 10_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      const startedAtMs = performance.now()
      const statement = withTimeout({ text: 'select pg_sleep(5)' }, 200)
      await expect(client.query(statement)).rejects.toThrow('Query read timeout')
      expect(performance.now() - startedAtMs).toBeLessThan(2_000)
    } finally {
      await client.end()
      await database.close()
    }
  })
})
