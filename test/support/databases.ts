// Databases for tests on a real Postgres server.
import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { inject } from 'vitest'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { postgresUrl } from './services.ts'

/** Opens a new migrated database on the real Postgres server. `close` drops it. */
export async function postgresDatabase(): Promise<PostgresDatabase & { readonly url: string }> {
  const url = await createMigratedDatabase()
  const database = openPostgres({ url, maxConnections: 10, onError: () => {} })
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

/** Creates a migrated database by copying, which needs a fifth of the CPU of a migration. @returns its URL */
export async function createMigratedDatabase(): Promise<string> {
  pattern ??= makePattern()
  return createDatabase(`peage_test_${randomBytes(8).toString('hex')}`, await pattern)
}

let pattern: Promise<string> | undefined

/** Creates the template of this worker's databases, which the end of the run drops. @returns SQL to copy it */
async function makePattern(): Promise<string> {
  const name = `${inject('patternPrefix')}${process.pid}`
  const database = openPostgres({ url: await createDatabase(name), maxConnections: 1, onError: () => {} })
  await database.migrate()
  await database.close()
  const [row] = await onServer<{ version: number }>(
    "select current_setting('server_version_num')::integer as version",
  )
  // By default, Postgres 15 and newer copy through the write-ahead log, at twice the cost.
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

/** Runs a statement on a kept connection, because opening one costs more than most statements. */
async function onServer<Row extends object>(sql: string): Promise<Row[]> {
  if (serverPool === undefined) {
    serverPool = new Pool({
      connectionString: postgresUrl(),
      max: 1,
      idleTimeoutMillis: 0,
      allowExitOnIdle: true,
    })
    // The run stops the server before its workers.
    serverPool.on('error', () => {})
  }
  return (await serverPool.query<Row>(sql)).rows
}
