import { Client } from 'pg'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { call } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { routes } from '../support/journey.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary, poolSize } from '../support/services.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

describeWithPostgresBinary('a gateway that is ready', () => {
  let postgres: Server
  let upstream: Upstream
  beforeAll(async () => {
    ;[postgres, upstream] = await Promise.all([startPostgres(inject('postgresBin')), startUpstream()])
  })
  afterAll(async () => {
    await upstream?.close()
    await postgres?.stop()
  })
  const onServer = async (sql: string) => {
    const client = new Client({ connectionString: postgres.url })
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }

  const started = async (url: string, work: (gateway: TestGateway) => Promise<void>) => {
    const gateway = await startGateway(routes(upstream.url), { postgres: url, redis: '' })
    await work(gateway).finally(gateway.stop)
  }

  it('has opened all connections of storage.pool', () =>
    started(postgres.url, async () => {
      const open = `select count(*)::int as n from pg_stat_activity where application_name = 'peage'`
      expect(await onServer(open)).toEqual([{ n: poolSize }])
    }))

  it('if Postgres allows fewer connections, starts anyway and logs a warning', async () => {
    await onServer('create role narrow login connection limit 3')
    await onServer('create database narrow owner narrow')
    const url = postgres.url.replace('postgres@', 'narrow@').replace(/postgres$/, 'narrow')
    await started(url, async gateway => {
      expect((await call(gateway.url, 'GET', '/public/x')).status).toBe(200)
      const [said] = gateway.log.filter(line => line.includes('postgres pool only partly warmed up'))
      expect(JSON.parse(said ?? '{}')).toMatchObject({
        level: 40,
        pool: poolSize,
        reason: expect.stringContaining('too many connections for role'),
      })
    })
  })
})
