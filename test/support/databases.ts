// Migrated databases for tests: an embedded one that is lent, and one on a real Postgres server.
import { randomBytes } from 'node:crypto'
import { Pool } from 'pg'
import { describe } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import type { EmbeddedDatabase } from '../../src/storage/pglite/pglite.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { lendDatabase } from './lent-database.ts'
import { areServicesThere, describeAlone, describeWithPostgres, postgresUrl } from './services.ts'

/** A migrated embedded database in memory; close it. */
export function embeddedDatabase(): Promise<EmbeddedDatabase> {
  return lendDatabase()
}

/** A migrated database of its own on the real Postgres server; closing it drops it. */
export async function postgresDatabase(): Promise<PostgresDatabase & { readonly url: string }> {
  const url = await createPostgresDatabase()
  const database = openPostgres({ url, maxConnections: 10, onError: () => {} })
  await database.migrate()
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
export async function createPostgresDatabase(): Promise<string> {
  const name = `peage_test_${randomBytes(8).toString('hex')}`
  await onServer(`create database ${name}`)
  const url = new URL(postgresUrl())
  url.pathname = `/${name}`
  return url.href
}

/** Drops a database made by `createPostgresDatabase`, whoever is still connected to it. */
export async function dropPostgresDatabase(url: string): Promise<void> {
  await onServer(`drop database if exists ${new URL(url).pathname.slice(1)} with (force)`)
}

export type OpenDatabase = () => Promise<Database>

/**
 * Runs one suite over a real Postgres, or over the embedded database where the services are not there: test/contracts
 * holds that the two are alike. A full matrix has both.
 */
export function describeOverDatabases(title: string, suite: (open: OpenDatabase) => void): void {
  describeAlone(`${title} (embedded)`, () => suite(embeddedDatabase))
  describeWithPostgres(`${title} (Postgres)`, () => suite(postgresDatabase))
}

/** Whether this is the one of a suite's databases for what has nothing to do with the database. */
export function isOneOf(open: OpenDatabase): boolean {
  return open === (areServicesThere() ? postgresDatabase : embeddedDatabase)
}

/** Runs one suite over the embedded database and over a real Postgres (reported as skipped where there is none). */
export function describeOverAllDatabases(title: string, suite: (open: OpenDatabase) => void): void {
  describe(`${title} (embedded)`, () => suite(embeddedDatabase))
  describeWithPostgres(`${title} (Postgres)`, () => suite(postgresDatabase))
}

async function onServer(sql: string): Promise<void> {
  const pool = new Pool({ connectionString: postgresUrl(), max: 1 })
  try {
    await pool.query(sql)
  } finally {
    await pool.end()
  }
}
