// Databases for tests on a real Postgres server.
import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { inject } from 'vitest'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { postgresUrl } from './services.ts'

/** Opens a new migrated database on the real Postgres server. `close` drops it. */
export async function postgresDatabase(): Promise<PostgresDatabase & { readonly url: string }> {
  const url = await createMigratedDatabase()
  // Tests send many statements at once. On a busy machine, they would exceed the usual time limit for a connection.
  const database = openPostgres({ url, maxConnections: 10, connectTimeoutMs: 5_000, onError: () => {} })
  return {
    ...database,
    url,
    async close() {
      await database.close()
      await dropPostgresDatabase(url)
    },
  }
}

/** Creates an empty database on the real Postgres server. @returns its URL */
export function createPostgresDatabase(): Promise<string> {
  return createDatabase(`peage_test_${randomBytes(8).toString('hex')}`)
}

/**
 * Creates a migrated database as a copy of a template. This needs only a fifth of the CPU time of the migrations.
 * @returns the URL of the copy
 */
export async function createMigratedDatabase(): Promise<string> {
  pattern ??= makePattern()
  return createDatabase(`peage_test_${randomBytes(8).toString('hex')}`, await pattern)
}

let pattern: Promise<string> | undefined

/**
 * Creates the template database of this worker. At the end of the run, the template is dropped.
 * @returns the end of a `create database` statement that copies the template
 */
async function makePattern(): Promise<string> {
  const name = `${inject('patternPrefix')}${process.pid}`
  const database = openPostgres({ url: await createDatabase(name), maxConnections: 1, onError: () => {} })
  await database.migrate()
  await database.close()
  const [row] = await onServer<{ version: number }>(
    "select current_setting('server_version_num')::integer as version",
  )
  // By default, Postgres 15 and newer write the whole copy to the write-ahead log. This makes the copy twice as
  // expensive.
  return `template ${name}${(row?.version ?? 0) >= 150_000 ? ' strategy file_copy' : ''}`
}

async function createDatabase(name: string, how = ''): Promise<string> {
  await onServer(`create database ${name} ${how}`)
  const url = new URL(postgresUrl())
  url.pathname = `/${name}`
  return url.href
}

/** Drops a database, even if clients are connected to it. */
export async function dropPostgresDatabase(url: string): Promise<void> {
  await onServer(`drop database if exists ${new URL(url).pathname.slice(1)} with (force)`)
}

let serverPool: Pool | undefined

/** Runs a statement on a reused connection, because opening a connection costs more than most statements. */
async function onServer<Row extends object>(sql: string): Promise<Row[]> {
  if (serverPool === undefined) {
    serverPool = new Pool({
      connectionString: postgresUrl(),
      max: 1,
      idleTimeoutMillis: 0,
      allowExitOnIdle: true,
    })
    // The run may stop the server before this worker ends. In this case a connection error is expected, so it is
    // ignored.
    serverPool.on('error', () => {})
  }
  return (await serverPool.query<Row>(sql)).rows
}
