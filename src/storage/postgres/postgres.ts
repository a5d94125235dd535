// The production database: a pool of connections to a Postgres server that never hangs and never ends the process.
import { Client, type CustomTypesConfig, Pool, types } from 'pg'
import type { PoolState } from '../../observability/metrics/gauges.ts'
import { type Database, type Prepared, type Queryable, StorageError } from '../database.ts'
import { storageError } from '../driver-error.ts'
import { type MigrationLog, runMigrations } from '../migrate.ts'
import { createQuery, STATEMENT_TIMEOUT } from './postgres-query.ts'
import { type LentClient, send, withClient } from './postgres-transaction.ts'
import { type Opening, openConnections } from './postgres-warmup.ts'

export interface PostgresOptions {
  /** `postgres://` or `postgresql://`, with what libpq knows as parameters. */
  url: string
  /** Connections at most. */
  pool: number
  /** Called when an idle connection is lost; the pool opens another when one is needed. */
  onError(error: StorageError): void
}

export interface PostgresDatabase extends Database {
  readonly kind: 'postgres'
  poolState(): PoolState
  /** Opens all connections before somebody waits for one, as far as the server has room. Never rejects. */
  openConnections(): Promise<Opening>
  /** Applies what is new in `migrations/`, on a connection of its own, without time-outs; returns the names applied. */
  migrate(log?: MigrationLog): Promise<string[]>
}

/** CONTRACT §4: storage down is answered within 2 s. A slot or a new connection, and then a statement. */
const CONNECT_TIMEOUT = 500
/** Milliseconds; whoever comes within a minute of a start, or of the burst before, finds the connections open. */
const IDLE_TIMEOUT = 60_000
/** SQLSTATE in_failed_sql_transaction. */
const ABORTED = '25P02'

/** Makes the pool; connects when it is first used. Every failure is a StorageError, within 1.5 s a statement. */
export function openPostgres({ url, pool: max, onError }: PostgresOptions): PostgresDatabase {
  const pool = new Pool({
    connectionString: url,
    max,
    application_name: 'peage',
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_TIMEOUT,
    idleTimeoutMillis: IDLE_TIMEOUT,
    query_timeout: STATEMENT_TIMEOUT,
    statement_timeout: STATEMENT_TIMEOUT,
    types: typeParsers,
  })
  // Without a listener a lost idle connection would end the process.
  pool.on('error', error => onError(storageError(error)))
  let closed: Promise<void> | undefined
  return {
    kind: 'postgres',
    query: createQuery(pool),
    transaction: (work, options) => withClient(pool, client => transact(client, work, options?.patience)),
    poolState: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount, max }),
    openConnections: () => openConnections(pool, max),
    migrate: log => migrateAlone(url, log),
    close: () => {
      closed ??= pool.end()
      return closed
    },
  }
}

async function transact<T>(
  lent: LentClient,
  work: (tx: Queryable) => Promise<T>,
  patience?: number,
): Promise<T> {
  await send(lent, 'begin')
  let result: T
  try {
    if (patience !== undefined) await send(lent, `set local statement_timeout = ${Math.ceil(patience)}`)
    result = await work({
      query: async <Row extends object>(sql: string | Prepared, values?: readonly unknown[]) =>
        (await send<Row>(lent, typeof sql === 'string' ? sql : sql.text, values, patience)).rows,
    })
  } catch (error) {
    // A failed rollback changes nothing: the client is then destroyed, and the server rolls back.
    if (!lent.lost) await send(lent, 'rollback').catch(() => {})
    throw error
  }
  // After an error that `work` swallowed, the server answers COMMIT by rolling back, without an error.
  const { command } = await send(lent, 'commit')
  if (command === 'ROLLBACK') throw new StorageError('database: transaction rolled back', ABORTED, undefined)
  return result
}

/** A migration may take longer than a request may wait, and the advisory lock longer than that. */
async function migrateAlone(url: string, log?: MigrationLog): Promise<string[]> {
  let client: Client | undefined
  try {
    client = new Client({
      connectionString: url,
      application_name: 'peage migrate',
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
    })
    client.on('error', () => {})
    await client.connect()
    return await runMigrations(client, log)
  } catch (error) {
    throw storageError(error)
  } finally {
    await client?.end().catch(() => {})
  }
}

const { INT8, DATE } = types.builtins

/** Ids are within 2^53 (CONTRACT §8); a date stays text, since a `Date` would carry a time zone. Rest as pg has it. */
const typeParsers: CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    if (format !== 'binary' && oid === INT8) return Number
    if (format !== 'binary' && oid === DATE) return (value: string) => value
    return types.getTypeParser(oid, format)
  },
}
