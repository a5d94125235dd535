// Runs `peage users` and `peage keys` with real files, on the embedded database and on Postgres.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll } from 'vitest'
import type { Io } from '../../src/commands/io.ts'
import type { Database } from '../../src/storage/database.ts'
import type { EmbeddedDatabase } from '../../src/storage/pglite/pglite.ts'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { lendDatabase } from '../support/lent-database.ts'
import { areServicesThere, poolSize } from '../support/services.ts'
import { describeOnBothSetups, describeOverSetups, services } from '../support/setups.ts'
import { emptyFolder, type Printed, runIn } from './peage.ts'

/** Runs a command line in `cwd`. Standard input is not a terminal, unless `stdin` is a stream with `isTTY`. */
export function peage(
  cwd: string,
  words: readonly string[],
  stdin: string | Uint8Array | Io['stdin'] = '',
  onError?: (soFar: string) => void,
  openFolder?: Io['openFolder'],
): Promise<Printed> {
  const typed = stdin instanceof Readable ? stdin : Readable.from([Buffer.from(stdin as string)])
  return runIn(cwd, words, { stdin: typed, onError, openFolder })
}

/** Creates a temporary folder with a gateway.yaml. The folder is removed after the suite. */
export function folder(): string {
  const cwd = emptyFolder()
  writeConfiguration(cwd)
  return cwd
}

/**
 * Returns an `openFolder` that always returns the same database. This database stays open for the whole suite. Opening
 * a real data folder takes half a second of CPU time, so only a few tests do this, for example users-calls.test.ts.
 */
export function lentFolder(cwd: string): NonNullable<Io['openFolder']> {
  let database: EmbeddedDatabase
  beforeAll(async () => {
    mkdirSync(join(cwd, 'data/postgres'), { recursive: true })
    database = await lendDatabase()
  })
  afterAll(() => database?.close())
  return async () => ({ ...database, close: async () => {} })
}

const oneRoute = `upstreams: { a: { targets: ["http://127.0.0.1:9000"] } }
routes: [{ name: one, path: /one, upstream: a, free_daily: true }]`

/**
 * @param postgres the URL of a Postgres server; if empty, the embedded database is used
 * @param routing the upstreams and routes, which only `peage explain` uses
 */
export function writeConfiguration(
  cwd: string,
  { name = 'gateway.yaml', postgres = '', admin = '', routing = oneRoute } = {},
): string {
  const storage = `storage: { postgres: '${postgres}', data_dir: '${join(cwd, 'data')}', pool: ${poolSize} }`
  writeFileSync(join(cwd, name), `${storage}\n${admin}\n${routing}\n`)
  return name
}

export interface Place {
  /** The folder of the configuration. */
  cwd: string
  /** Returns the options for `writeConfiguration` to write another file with the same database. */
  configuration(): { readonly postgres?: string }
  users(
    words: readonly string[],
    stdin?: Parameters<typeof peage>[2],
    onError?: Parameters<typeof peage>[3],
  ): Promise<Printed>
  /** Runs any command in the folder of the configuration. */
  run(
    words: readonly string[],
    stdin?: Parameters<typeof peage>[2],
    onError?: Parameters<typeof peage>[3],
  ): Promise<Printed>
  /** The operator that the audit log shows for the commands. */
  operator: string
  /**
   * Calls `work` with the database that the commands change. If the commands call a gateway, this is the database of
   * the gateway. While `work` runs, no command runs.
   */
  inside<T>(work: (database: Database) => Promise<T>): Promise<T>
}

/** Runs one suite on a migrated database. In a full matrix, it runs on the embedded database and on Postgres. */
export function describeOverPlaces(title: string, suite: (place: Place) => void): void {
  describeOverSetups(title, setup => suite(setup === services ? postgresPlace() : embeddedPlace()))
}

/** Runs one suite on both databases (embedded and Postgres), even without a full matrix. */
export function describeOnBothPlaces(title: string, suite: (place: Place) => void): void {
  describeOnBothSetups(title, setup => suite(setup === services ? postgresPlace() : embeddedPlace()))
}

/** Returns a place with Postgres if Postgres is available, otherwise with the embedded database. */
export function eitherPlace(): Place {
  return areServicesThere() ? postgresPlace() : embeddedPlace()
}

function embeddedPlace(): Place {
  const cwd = folder()
  const open = lentFolder(cwd)
  const inside: Place['inside'] = async work => {
    const database = await open(join(cwd, 'data'))
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }
  return placeIn(cwd, inside, open)
}

export function postgresPlace(): Place {
  let url: string
  let database: Database
  const cwd = folder()
  beforeAll(async () => {
    url = await createPostgresDatabase()
    writeConfiguration(cwd, { postgres: url })
    await peage(cwd, ['migrate'])
    database = openPostgres({ url, maxConnections: 1, onError: () => {} })
  })
  afterAll(async () => {
    await database.close()
    await dropPostgresDatabase(url)
  })
  return placeIn(
    cwd,
    work => work(database),
    undefined,
    () => ({ postgres: url }),
  )
}

function placeIn(
  cwd: string,
  inside: Place['inside'],
  openFolder?: Io['openFolder'],
  configuration: Place['configuration'] = () => ({}),
): Place {
  return {
    cwd,
    configuration,
    operator: 'cli',
    run: (words, stdin, onError) => peage(cwd, words, stdin, onError, openFolder),
    users: (words, stdin, onError) => peage(cwd, ['users', ...words], stdin, onError, openFolder),
    inside,
  }
}
