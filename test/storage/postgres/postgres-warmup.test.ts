// The pool opens connections before the first request, unless a limit or the server prevents it.
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest'
import { openPostgres, type PostgresDatabase } from '../../../src/storage/postgres/postgres.ts'
import { type Server, startPostgres } from '../../support/servers.ts'
import { describeWithPostgresBinary } from '../../support/services.ts'

describeWithPostgresBinary('connections that are opened in advance', () => {
  let server: Server
  const opened: PostgresDatabase[] = []
  const open = (maxConnections: number, user = 'postgres') => {
    const url = server.url.replace('postgres@', `${user}@`)
    const database = openPostgres({ url, maxConnections, onError: () => {} })
    opened.push(database)
    return database
  }
  const asOperator = async (sql: string) => {
    const client = new Client({ connectionString: server.url })
    await client.connect()
    try {
      return (await client.query(sql)).rows
    } finally {
      await client.end()
    }
  }
  const countOnServer = async () => {
    const [row] = await asOperator(
      `select count(*)::int as n from pg_stat_activity where application_name = 'peage'`,
    )
    return row?.n
  }
  beforeAll(async () => {
    server = await startPostgres(inject('postgresBin'), { maxConnections: 16 })
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map(database => database.close()))
    await expect.poll(countOnServer, { timeout: 5_000 }).toBe(0)
  })
  afterAll(() => server?.stop())

  it('fill the pool and are idle', async () => {
    const database = open(5)
    expect(await database.warmUp()).toEqual({ open: 5, reason: undefined })
    expect(await countOnServer()).toBe(5)
    expect(database.poolState()).toEqual({ total: 5, idle: 5, waiting: 0, max: 5 })
  })

  it('leave a quarter of max_connections to other clients', async () => {
    const database = open(20)
    const reason = 'three quarters of max_connections are in use'
    const opening = await database.warmUp()
    expect(opening.reason).toBe(reason)
    // A connection of `asOperator` may still be closing. It counts toward the limit until it is closed. So the pool may
    // open fewer than 12 connections.
    expect(opening.open).toBeLessThanOrEqual(12)
    expect(opening.open).toBeGreaterThanOrEqual(10)
    expect(await countOnServer()).toBe(opening.open)
    const other = open(5)
    expect((await other.warmUp()).open).toBeLessThanOrEqual(3)
  })

  it("do not exceed the role's connection limit, and they can run queries", async () => {
    await asOperator('create role narrow login connection limit 3')
    const database = open(5, 'narrow')
    const { open: count, reason } = await database.warmUp()
    expect(count).toBe(3)
    expect(reason).toContain('too many connections for role')
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('are all open after a server that hung for 0.7 s responds again', async () => {
    const database = open(4)
    server.pause()
    const opening = database.warmUp()
    try {
      await sleep(700)
    } finally {
      server.resume()
    }
    expect(await opening).toEqual({ open: 4, reason: undefined })
  })

  it('are given up if the server hangs or is down, and the result contains the reason', async () => {
    const database = open(20)
    server.pause()
    const begun = performance.now()
    try {
      const { open: count, reason } = await database.warmUp()
      expect(count).toBe(0)
      expect(reason).toMatch(/^not finished within 5 s: .*timeout/)
    } finally {
      server.resume()
    }
    expect(performance.now() - begun).toBeLessThan(8_000)
    await server.kill()
    const { open: count, reason } = await database.warmUp()
    expect(count).toBe(0)
    expect(reason).toContain('ECONNREFUSED')
    await server.restart()
  })
})
