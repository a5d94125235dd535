// The production database: a pool of connections to a Postgres server that never hangs and never ends the process.
import { Client, type CustomTypesConfig, Pool, type PoolClient, type QueryResult, types } from 'pg'
import type { PoolState } from '../metrics/states.ts'
import { type Database, type Prepared, type Queryable, StorageError } from './database.ts'
import { storageError } from './driver-error.ts'
import { type MigrationLog, runMigrations } from './migrate.ts'
import { createQuery, isUnanswered, STATEMENT_TIMEOUT, type Statement } from './postgres-query.ts'

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
  /** Applies what is new in `migrations/`, on a connection of its own, without time-outs; returns the names applied. */
  migrate(log?: MigrationLog): Promise<string[]>
}

/** CONTRACT §4: storage down is answered within 2 s. A slot or a new connection, and then a statement. */
const CONNECT_TIMEOUT = 500
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
    migrate: log => migrateAlone(url, log),
    close: () => {
      closed ??= pool.end()
      return closed
    },
  }
}

/** Lends a client to a transaction. One that may still be busy, in a transaction or broken is destroyed, not lent again. */
async function withClient<T>(pool: Pool, work: (client: LentClient) => Promise<T>): Promise<T> {
  let client: PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw storageError(error)
  }
  const lent: LentClient = { client, lost: false }
  // The pool listens while a client is idle; while it is lent a terminated backend would end the process.
  const onLost = () => {
    lent.lost = true
  }
  client.on('error', onLost)
  try {
    return await work(lent)
  } finally {
    client.off('error', onLost)
    client.release(lent.lost || client.getTransactionStatus() !== 'I')
  }
}

interface LentClient {
  readonly client: PoolClient
  /** Its connection is gone, or an answer is still outstanding on it. */
  lost: boolean
}

async function send<Row extends object>(
  lent: LentClient,
  text: string,
  values: readonly unknown[] = [],
  patience = STATEMENT_TIMEOUT,
) {
  if (lent.lost) throw new StorageError('database: connection lost', undefined, undefined)
  try {
    const statement: Statement = { text, values: [...values], query_timeout: patience }
    return (await lent.client.query(statement)) as QueryResult<Row>
  } catch (error) {
    const wrapped = storageError(error)
    if (isUnanswered(wrapped)) lent.lost = true
    throw wrapped
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
