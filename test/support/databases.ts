// Migrated databases for tests: an embedded one that is lent, and one on a real Postgres server.
import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { inject } from 'vitest'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { postgresUrl } from './services.ts'

/** A migrated database of its own on the real Postgres server; closing it drops it. */
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

/** An empty database on the real Postgres server; returns its URL. */
export function createPostgresDatabase(): Promise<string> {
  return createDatabase(`peage_test_${randomBytes(8).toString('hex')}`)
}

/** A migrated one; returns its URL. It is a copy: to migrate each takes five times as much CPU. */
export async function createMigratedDatabase(): Promise<string> {
  pattern ??= makePattern()
  return createDatabase(`peage_test_${randomBytes(8).toString('hex')}`, await pattern)
}

let pattern: Promise<string> | undefined

/** What this worker's databases are copied from, in the words of `create database`; the end of the run drops it. */
async function makePattern(): Promise<string> {
  const name = `${inject('patternPrefix')}${process.pid}`
  const database = openPostgres({ url: await createDatabase(name), maxConnections: 1, onError: () => {} })
  await database.migrate()
  await database.close()
  const [row] = await onServer<{ version: number }>(
    "select current_setting('server_version_num')::integer as version",
  )
  // By itself, Postgres 15 and newer copy page by page through their log, at twice the cost.
  return `template ${name}${(row?.version ?? 0) >= 150_000 ? ' strategy file_copy' : ''}`
}

async function createDatabase(name: string, how = ''): Promise<string> {
  await onServer(`create database ${name} ${how}`)
  const url = new URL(postgresUrl())
  url.pathname = `/${name}`
  return url.href
}

/** Drops one of these, whoever is still connected to it. */
export async function dropPostgresDatabase(url: string): Promise<void> {
  await onServer(`drop database if exists ${new URL(url).pathname.slice(1)} with (force)`)
}

let serverPool: Pool | undefined

/** On a connection that this worker keeps: to open one costs more than most statements. */
async function onServer<Row extends object>(sql: string): Promise<Row[]> {
  if (serverPool === undefined) {
    serverPool = new Pool({
      connectionString: postgresUrl(),
      max: 1,
      idleTimeoutMillis: 0,
      allowExitOnIdle: true,
    })
    // The run ends the server before its workers.
    serverPool.on('error', () => {})
  }
  return (await serverPool.query<Row>(sql)).rows
}
