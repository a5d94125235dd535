// Tests what commands do if the configured database cannot be used, or is slow.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { runProgram } from '../support/program.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary } from '../support/services.ts'
import { startStallingRelay } from '../support/stalling-relay.ts'
import { emptyFolder, runIn } from './peage.ts'
import { writeConfiguration } from './users-setup.ts'

describeWithPostgresBinary('peage', () => {
  const cwd = emptyFolder()
  const silent = createServer(() => {})
  let postgres: Server
  beforeAll(async () => {
    postgres = await startPostgres(inject('postgresBin'))
    const client = new Client(postgres.url)
    await client.connect()
    // Before Postgres 15, every role can create tables in the schema `public`. So this right is revoked.
    await client.query('create role guest login; revoke create on schema public from public')
    for (const encoding of ['LATIN1', 'SQL_ASCII']) {
      await client.query(
        `create database ${encoding.toLowerCase()} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`,
      )
    }
    await client.end()
    await once(silent.listen(0, '127.0.0.1'), 'listening')
  })
  afterAll(async () => {
    silent.close()
    await postgres?.stop()
  })

  interface Case {
    is: string
    user: string
    at(): string
    reason: string
    advice: string
  }
  const here = () => `127.0.0.1:${postgres.port}`
  const isUp = 'Check that the server is running, and that storage.postgres in gateway.yaml is correct'
  const cases: Case[] = [
    {
      is: 'down',
      user: 'peage',
      at: () => '127.0.0.1:1/x',
      reason: 'connect ECONNREFUSED 127\\.0\\.0\\.1:1',
      advice: isUp,
    },
    {
      is: 'silent',
      user: 'peage',
      at: () => `127.0.0.1:${(silent.address() as AddressInfo).port}/x`,
      reason: 'timeout expired',
      advice: isUp,
    },
    {
      is: 'on a host without an address',
      user: 'peage',
      at: () => 'db.invalid:5432/x',
      reason: 'getaddrinfo (ENOTFOUND|EAI_AGAIN) db\\.invalid',
      advice: 'Check the host in storage.postgres in gateway.yaml, and the DNS of this machine',
    },
    {
      is: 'without the user',
      user: 'peage',
      at: () => `${here()}/postgres`,
      reason: 'role "peage" does not exist \\(28000\\)',
      advice: 'Check the user, the password and sslmode of storage.postgres in gateway.yaml, and pg_hba.conf',
    },
    {
      is: 'not created yet',
      user: 'postgres',
      at: () => `${here()}/away`,
      reason: 'database "away" does not exist \\(3D000\\)',
      advice: 'Create that database, or correct its name in storage.postgres in gateway.yaml',
    },
    {
      is: 'without TLS',
      user: 'postgres',
      at: () => `${here()}/postgres?sslmode=verify-full`,
      reason: 'The server does not support SSL connections',
      advice:
        "Check sslmode and sslrootcert of storage.postgres in gateway.yaml, and the server's certificate",
    },
    {
      is: 'without the right to create tables',
      user: 'guest',
      at: () => `${here()}/postgres`,
      reason: 'permission denied for schema public \\(42501\\)',
      advice:
        'Make the user of storage.postgres in gateway.yaml the owner of the database, or grant it the right to create tables',
    },
    ...['LATIN1', 'SQL_ASCII'].map(encoding => ({
      is: `in the encoding ${encoding}`,
      user: 'postgres',
      at: () => `${here()}/${encoding.toLowerCase()}`,
      reason: `server_encoding is ${encoding}, not UTF8`,
      advice:
        "Create a database with encoding 'UTF8' and template template0, and set it in storage.postgres in gateway.yaml",
    })),
    {
      is: 'set to serializable transactions',
      user: 'postgres',
      at: () => `${here()}/postgres?options=-c%20default_transaction_isolation%3Dserializable`,
      reason: 'default_transaction_isolation is serializable, not read committed',
      advice:
        "For the user of storage.postgres in gateway.yaml, run alter role … set default_transaction_isolation = 'read committed'",
    },
    {
      is: 'set to another DateStyle',
      user: 'postgres',
      at: () => `${here()}/postgres?options=-c%20DateStyle%3DSQL`,
      reason: 'DateStyle is SQL, MDY, not ISO',
      advice: "For the user of storage.postgres in gateway.yaml, run alter role … set DateStyle = 'ISO'",
    },
  ]

  it.each(cases)(
    '`start` and `migrate` exit with 1, and print the reason and the solution but no password, if the database is $is',
    async ({ user, at, reason, advice }) => {
      writeConfiguration(cwd, { postgres: `postgres://${user}:s3cret@${at()}` })
      const place = at().replace(/\?.*/, '')
      const start = await runProgram(['start'], cwd)
      const migrate = await runIn(cwd, ['migrate'])
      for (const [exit, stderr] of [
        [start.code, start.stderr],
        [migrate.exit, migrate.stderr],
      ] as const) {
        // `migrate` may print the failed SQL statement before the error, so only the last line is compared.
        const said = stderr.trimEnd().split('\n').at(-1)
        expect([exit, said]).toEqual([
          1,
          expect.stringMatching(`^error: the database ${place} failed \\(${reason}\\)\\. ${advice}\\.$`),
        ])
        expect(stderr).not.toContain('s3cret')
      }
    },
  )

  it('`migrate` refuses a database that does not use UTF-8 before the first migration', async () => {
    const url = `postgres://postgres@${here()}/latin1`
    writeConfiguration(cwd, { postgres: url })
    expect((await runIn(cwd, ['migrate'])).exit).toBe(1)
    const client = new Client(url)
    await client.connect()
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'")
    await client.end()
    expect(rows).toEqual([])
  })

  it('`users list` waits for a slow database that takes 2 s to accept a connection', async () => {
    const relay = await startStallingRelay(`postgres://postgres@${here()}/postgres`)
    try {
      writeConfiguration(cwd, { postgres: relay.url })
      expect((await runIn(cwd, ['migrate'])).exit).toBe(0)
      relay.stall()
      setTimeout(relay.flow, 2_000)
      expect(await runIn(cwd, ['users', 'list'])).toMatchObject({ exit: 0, stderr: '' })
    } finally {
      await relay.close()
    }
  })
})
