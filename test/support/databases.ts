// Migrated databases for tests: an embedded one from a cached snapshot, and one on a real Postgres server.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { Pool } from 'pg'
import { describe } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { type EmbeddedDatabase, openEmbedded } from '../../src/storage/pglite/pglite.ts'
import { openPostgres, type PostgresDatabase } from '../../src/storage/postgres/postgres.ts'
import { describeWithPostgres, postgresUrl } from './services.ts'

/** A migrated embedded database in memory, in about half a second; close it. */
export async function embeddedDatabase(): Promise<EmbeddedDatabase> {
  snapshot ??= migratedSnapshot()
  return openEmbedded({ snapshot: await snapshot })
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

/** Runs one suite over the embedded database and over a real Postgres (reported as skipped where there is none). */
export function describeOverDatabases(title: string, suite: (open: OpenDatabase) => void): void {
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

let snapshot: Promise<Blob> | undefined

const MIGRATIONS = new URL('../../migrations/', import.meta.url)
const CACHE = new URL('../../node_modules/.cache/peage-test/', import.meta.url)

/** A fresh PGlite takes seconds; its data folder, migrated, is kept under a name that its migrations decide. */
async function migratedSnapshot(): Promise<Blob> {
  const hash = createHash('sha256')
  for (const name of (await readdir(MIGRATIONS)).sort()) {
    hash.update(name).update(await readFile(new URL(name, MIGRATIONS)))
  }
  hash.update(await readFile(new URL('../../package-lock.json', import.meta.url)))
  const file = new URL(`${hash.digest('hex').slice(0, 16)}.tar`, CACHE)
  try {
    return new Blob([await readFile(file)])
  } catch {
    const database = await openEmbedded()
    await database.migrate()
    const dump = await database.dump()
    await database.close()
    await mkdir(CACHE, { recursive: true })
    // Several test files may get here at once: each writes its own, and the last rename stands.
    const own = new URL(`${file.href}.${randomBytes(4).toString('hex')}`)
    await writeFile(own, Buffer.from(await dump.arrayBuffer()))
    await rename(own, file)
    return dump
  }
}
