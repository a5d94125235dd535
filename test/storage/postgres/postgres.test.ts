// If Postgres is down, paused or slow, or ends connections, queries fail with a StorageError within 2 s. When Postgres
// works again, the pool recovers.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { prepared, StorageError } from '../../../src/storage/database.ts'
import { openPostgres, type PostgresDatabase } from '../../../src/storage/postgres/postgres.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../../support/databases.ts'
import { type Server, startPostgres } from '../../support/servers.ts'
import { describeWithPostgresBinary, describeWithServices } from '../../support/services.ts'

const opened: PostgresDatabase[] = []
const lost: StorageError[] = []

function open(url: string, maxConnections = 2): PostgresDatabase {
  const database = openPostgres({ url, maxConnections, onError: error => lost.push(error) })
  opened.push(database)
  return database
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map(database => database.close()))
  lost.length = 0
})

/** Returns the error of `attempt` and the time in milliseconds until the attempt failed. */
async function failure(attempt: Promise<unknown>): Promise<{ error: StorageError; after: number }> {
  const started = performance.now()
  const error = await attempt.then(
    () => expect.unreachable('it should have failed'),
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(StorageError)
  return { error, after: performance.now() - started }
}

describeWithServices('a Postgres connection', () => {
  let url: string
  beforeAll(async () => {
    url = await createPostgresDatabase()
  })
  afterAll(() => dropPostgresDatabase(url))

  it('has the application name "peage"', async () => {
    expect(await open(url).query('select current_setting($1) as name', ['application_name'])).toEqual([
      { name: 'peage' },
    ])
  })

  it('aborts a statement that takes longer than a second', async () => {
    const { after } = await failure(open(url).query('select pg_sleep(10)'))
    expect(after).toBeLessThan(2_000)
  })

  it('causes an error, not a crash, if the server closes the connection right after the start', async () => {
    const { hostname, port } = new URL(url)
    const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1')
    const fields = 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
    const length = Buffer.alloc(4)
    length.writeUInt32BE(4 + fields.length)
    const fatal = Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)])
    const relay = createServer(client => {
      const server = connect(Number(port), hostname)
      client.on('error', () => server.destroy()).pipe(server)
      server.on('error', () => client.destroy())
      server.on('data', bytes => {
        if (bytes.includes(readyForQuery)) client.end(Buffer.concat([bytes, fatal]))
        else client.write(bytes)
      })
    })
    await once(relay.listen(0, '127.0.0.1'), 'listening')
    const through = new URL(url)
    through.host = `127.0.0.1:${(relay.address() as AddressInfo).port}`
    await failure(open(through.href).query('select 1'))
    relay.close()
  })

  it('prepares a statement once, but runs it unprepared if a pooler has changed the server connection', async () => {
    const database = open(url, 1)
    const statement = prepared('select $1::int as n')
    const names = () => database.query('select name from pg_prepared_statements')
    expect(await database.query(statement, [1])).toEqual([{ n: 1 }])
    expect(await names()).toEqual([{ name: statement.name }])
    await database.query('deallocate all')
    expect(await database.query(statement, [2])).toEqual([{ n: 2 }])
    expect(await names()).toEqual([])

    const other = open(url, 1)
    await other.query(`prepare ${statement.name} as select 3`)
    expect(await other.query(statement, [4])).toEqual([{ n: 4 }])
  })

  it('can still run a prepared statement after a migration has changed the type of a column', async () => {
    const database = open(url, 1)
    await database.query('create table widened (n smallint not null)')
    await database.query('insert into widened values (1)')
    const statement = prepared('select n from widened')
    expect(await database.query(statement)).toEqual([{ n: 1 }])
    await database.query('alter table widened alter column n type integer')
    expect(await database.query(statement)).toEqual([{ n: 1 }])
  })

  it('never returns the late result of a timed-out statement to the next statement', async () => {
    const database = open(url, 1)
    await failure(database.query("select pg_sleep(1.2), 'old' as answer"))
    expect(await database.query("select 'new' as answer")).toEqual([{ answer: 'new' }])
    await sleep(400)
    expect(await database.query("select 'newer' as answer")).toEqual([{ answer: 'newer' }])
  })

  it('makes other queries fail after 0.5 s if it stays in use', async () => {
    const database = open(url, 1)
    const holding = database.transaction(tx => tx.query('select pg_sleep(0.8)'))
    const waits = await Promise.all([1, 2, 3].map(() => failure(database.query('select 1'))))
    for (const { after } of waits) expect(after).toBeLessThan(1_000)
    await holding
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('has no open transaction and no changed setting after a transaction fails', async () => {
    const database = open(url, 1)
    const failed = database.transaction(async tx => {
      await tx.query("set local application_name = 'changed'")
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    const [row] = await database.query(
      "select current_setting('application_name') as name, (select count(*) from pg_stat_activity where state like 'idle in%' and datname = current_database()) as open",
    )
    expect(row).toEqual({ name: 'peage', open: 0 })
  })

  it('is replaced if Postgres ends it while it is idle, and the error is reported', async () => {
    const database = open(url, 1)
    const other = open(url, 1)
    const [row] = await database.query<{ pid: number }>('select pg_backend_pid() as pid')
    await other.query('select pg_terminate_backend($1)', [row?.pid])
    await expect.poll(() => lost, { timeout: 5_000 }).toHaveLength(1)
    expect(lost[0]?.code).toBe('57P01')
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('is replaced if Postgres ends it between two statements or during a statement', async () => {
    const database = open(url, 1)
    const other = open(url, 1)
    const work = database.transaction(async tx => {
      const [row] = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      await other.query('select pg_terminate_backend($1)', [row?.pid])
      await sleep(100)
      await tx.query('select 1')
    })
    await failure(work)
    const running = failure(database.query('select pg_sleep(0.9)'))
    const end = "select pg_terminate_backend(pid) from pg_stat_activity where query = 'select pg_sleep(0.9)'"
    await expect.poll(() => other.query(end)).toHaveLength(1)
    expect((await running).after).toBeLessThan(700)
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
  })
})

describeWithPostgresBinary('a Postgres server', () => {
  let server: Server
  beforeAll(async () => {
    server = await startPostgres(inject('postgresBin'))
  })
  afterAll(() => server.stop())

  it('makes queries and transactions fail within 2 s while it is paused, and then works again', async () => {
    const database = open(server.url, 2)
    await Promise.all([database.query('select 1'), database.query('select 2')])
    const slow = failure(
      database.transaction(async tx => {
        await tx.query('select 1')
        server.pause()
        await tx.query('select 2')
      }),
    )
    expect((await slow).after).toBeLessThan(2_000)
    for (let round = 0; round < 2; round += 1) {
      const failures = await Promise.all(
        Array.from({ length: 12 }, () => failure(database.query('select 1'))),
      )
      for (const { after } of failures) expect(after).toBeLessThan(2_000)
    }
    server.resume()
    await expect.poll(() => database.query('select 1 as one')).toEqual([{ one: 1 }])
  })

  it('makes queries fail within 1 s when it is killed, and works again after a restart', async () => {
    const database = open(server.url, 2)
    await database.query('create table if not exists kept (id int)')
    await server.kill()
    const { after } = await failure(database.query('select 1'))
    expect(after).toBeLessThan(1_000)
    expect((await failure(database.transaction(tx => tx.query('select 1')))).after).toBeLessThan(1_000)
    await server.restart()
    await expect.poll(() => database.query('select * from kept')).toEqual([])
  })

  it('is not used while it is a standby, not even for reads, and is used after its promotion', async () => {
    const database = open(server.url, 2)
    const [{ folder } = { folder: '' }] = await database.query<{ folder: string }>(
      "select current_setting('data_directory') as folder",
    )
    await server.kill()
    await writeFile(join(folder, 'standby.signal'), '')
    await server.restart()
    const { error, after } = await failure(database.query('select 1'))
    expect(error).toMatchObject({ code: '25006', message: expect.stringContaining('standby') })
    expect(after).toBeLessThan(1_000)
    expect(database.poolState().total).toBe(0)
    const operator = new Client({ connectionString: server.url })
    await operator.connect()
    await operator.query('select pg_promote()')
    await operator.end()
    await database.query('create table promoted (id int)')
  })

  it('is used for writes as soon as it is no longer read-only', async () => {
    const set = async (value: 'on' | 'off') => {
      const operator = new Client({ connectionString: server.url })
      await operator.connect()
      await operator.query('set default_transaction_read_only = off')
      await operator.query(`alter database postgres set default_transaction_read_only = ${value}`)
      await operator.end()
    }
    await set('on')
    const database = open(server.url, 1)
    expect(await database.query('select 1 as one')).toEqual([{ one: 1 }])
    const write = () => database.query('create table if not exists written (id int)')
    expect((await failure(write())).error.code).toBe('25006')
    expect((await failure(database.transaction(tx => tx.query('drop table written')))).error.code).toBe(
      '25006',
    )
    await set('off')
    await write()
  })
})

describe('a Postgres address', () => {
  let silent: TcpServer
  beforeAll(async () => {
    silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
  })
  afterAll(() => silent.close())

  it('causes a StorageError that does not contain the password if no server listens there', async () => {
    const { error } = await failure(open('postgres://peage:hunter2@127.0.0.1:1/peage').query('select 1'))
    expect(error.code).toBeUndefined()
    expect(error.message).toMatch(/ECONNREFUSED/)
    expect(error.message).not.toContain('hunter2')
  })

  it('causes a StorageError that does not contain the password if the address is invalid', async () => {
    const database = open('postgres://peage:hunter2@127.0.0.1:no-port/peage')
    for (const attempt of [database.query('select 1'), database.migrate()]) {
      const { error } = await failure(attempt)
      expect(`${error.message} ${error.stack}`).not.toContain('hunter2')
    }
  })

  it('causes an error within 2 s if its server accepts connections but sends nothing', async () => {
    const { port } = silent.address() as { port: number }
    const { after } = await failure(open(`postgres://127.0.0.1:${port}/peage`).query('select 1'))
    expect(after).toBeLessThan(2_000)
  })
})
