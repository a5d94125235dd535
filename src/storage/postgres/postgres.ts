// Opens the production database, which is a pool of connections to a Postgres server. Even if the server fails, queries
// never hang, and the process never ends.
import { Client, type CustomTypesConfig, type PoolClient, types } from 'pg'
import type { PoolState } from '../../observability/metrics/gauges.ts'
import { buildIndexesConcurrently } from '../concurrent-indexes.ts'
import { type Database, type Prepared, type Queryable, StorageError, textOf } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { type MigrationLog, runMigrations } from '../migrate.ts'
import { createPool, withTimeout } from './pg-internals.ts'
import {
  type CheckedOutClient,
  createQuery,
  query,
  READ_ONLY,
  STATEMENT_TIMEOUT_MS,
  withClient,
} from './postgres-query.ts'
import type { PostgresState } from './postgres-state.ts'
import { type WarmupResult, warmUp } from './postgres-warmup.ts'

interface PostgresOptions {
  /** The URL of the database. It begins with `postgres://` or `postgresql://`, and may contain parameters of libpq. */
  url: string
  maxConnections: number
  /**
   * The time limit in milliseconds to open a connection. The setup statement of the connection has the same time limit.
   */
  connectTimeoutMs?: number | undefined
  /** Called when an idle connection is lost. The pool opens another connection when it needs one. */
  onError(error: StorageError): void
  /** Observes every query and every transaction. */
  state?: PostgresState | undefined
}

export interface PostgresDatabase extends Database {
  readonly kind: 'postgres'
  poolState(): PoolState
  /** Opens all connections in advance, as far as the server has room. Never rejects. */
  warmUp(): Promise<WarmupResult>
  /** Applies the migrations, on a separate connection without timeouts. @returns the names of the applied migrations */
  migrate(log?: MigrationLog): Promise<string[]>
}

/**
 * The time limit to get a free connection or to open a connection. This limit and the time limit of a statement
 * together are less than 2 s, so a request waits at most 2 s while storage is down.
 */
const CONNECT_TIMEOUT_MS = 500
/**
 * The statement timeout of the server is shorter than the timeout of the gateway. This is the difference in
 * milliseconds. If the server ends a statement, its error proves that the server is up, and shows what the statement
 * waited for.
 */
const SERVER_LEAD_MS = 100
/** Time limit of the setup statement on a new connection, after connecting and before the first query. */
const VERIFY_TIMEOUT_MS = 400
/** How long unused connections stay open after a start or a burst of requests. */
const IDLE_TIMEOUT_MS = 60_000
const STANDBY = 'database: the server is a standby and does not accept writes'
const FAILED_TRANSACTION = '25P02'

/**
 * Creates the pool. The first connection is opened on first use. Every failure is a StorageError. If `connectTimeoutMs`
 * is absent, a statement fails within 1.9 s.
 */
export function openPostgres(options: PostgresOptions): PostgresDatabase {
  const { url, maxConnections, connectTimeoutMs, onError, state } = options
  const pool = createPool({
    connectionString: url,
    max: maxConnections,
    application_name: 'peage',
    keepAlive: true,
    connectionTimeoutMillis: connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS - SERVER_LEAD_MS,
    types: typeParsers,
    verify: refuseStandby(connectTimeoutMs ?? VERIFY_TIMEOUT_MS),
  })
  // Without a listener, a lost idle connection would end the process.
  pool.on('error', error => onError(toStorageError(error)))
  // A server may accept and end a connection in the same packet. At that time, neither the pool nor the code that waits
  // for the connection has a listener, so the error would end the process.
  pool.on('connect', client => client.on('error', () => {}))
  const runQuery = createQuery(pool)
  const observe: PostgresState['observe'] = work => state?.observe(work) ?? work
  let closed: Promise<void> | undefined
  return {
    kind: 'postgres',
    query: (sql, values) => observe(runQuery(sql, values)),
    transaction: (work, options) =>
      observe(withClient(pool, client => runTransaction(client, work, options?.timeoutMs))),
    poolState: () => ({
      total: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      max: maxConnections,
    }),
    warmUp: () => warmUp(pool, maxConnections),
    migrate: log => migrateOnOwnConnection(url, log),
    close: () => {
      closed ??= pool.end()
      return closed
    },
  }
}

/**
 * Refuses a standby. After a failover, the host name may lead to the former primary for a while. The former primary is
 * now a standby, so it rejects writes and returns old data.
 */
function refuseStandby(timeoutMs: number) {
  return (client: PoolClient, done: (error?: Error) => void): void => {
    const statement = withTimeout({ text: 'select pg_is_in_recovery() as is_standby' }, timeoutMs)
    client
      .query<{ is_standby: boolean }>(statement)
      .then(
        ({ rows }) =>
          done(rows[0]?.is_standby === false ? undefined : new StorageError(STANDBY, READ_ONLY, undefined)),
        done,
      )
  }
}

async function runTransaction<T>(
  checkedOut: CheckedOutClient,
  work: (tx: Queryable) => Promise<T>,
  timeoutMs?: number,
): Promise<T> {
  await query(checkedOut, 'begin')
  let result: T
  try {
    if (timeoutMs !== undefined)
      await query(checkedOut, `set local statement_timeout = ${Math.ceil(timeoutMs)}`)
    result = await work({
      query: async <Row extends object>(sql: string | Prepared, values?: readonly unknown[]) =>
        (await query<Row>(checkedOut, textOf(sql), values, timeoutMs)).rows,
    })
  } catch (error) {
    // A failed rollback is harmless, because the client is then destroyed and the server rolls back.
    if (!checkedOut.isLost) await query(checkedOut, 'rollback').catch(() => {})
    throw error
  }
  // If `work` caught an error of a statement, the server responds to COMMIT with a rollback, not with an error.
  const { command } = await query(checkedOut, 'commit')
  if (command === 'ROLLBACK')
    throw new StorageError('database: transaction rolled back', FAILED_TRANSACTION, undefined)
  return result
}

/**
 * Uses a separate connection, because a migration and the wait for its advisory lock may take longer than the timeout
 * of a request.
 */
async function migrateOnOwnConnection(url: string, log?: MigrationLog): Promise<string[]> {
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
    await refuseSettings(client)
    const applied = await runMigrations(client, log)
    await buildIndexesConcurrently(client, log)
    return applied
  } catch (error) {
    throw toStorageError(error)
  } finally {
    await client?.end().catch(() => {})
  }
}

/**
 * Refuses settings with values that the SQL statements or the driver do not support. A setting may come from the
 * server, the database or the role.
 */
async function refuseSettings(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string; value: string; needed: string }>(
    `select name, current_setting(name) as value, needed
       from (values ('server_encoding', 'UTF8'), ('default_transaction_isolation', 'read committed'),
                    ('DateStyle', 'ISO')) as s (name, needed)
      where not starts_with(current_setting(name), needed)`,
  )
  for (const { name, value, needed } of rows)
    throw new StorageError(`database: ${name} is ${value}, not ${needed}`, undefined, undefined)
}

const { INT8, DATE } = types.builtins

/**
 * Parses `bigint` values as numbers, because IDs are below 2^53. Parses `date` values as text, because a `Date` would
 * depend on a time zone. Other types use the parsers of pg.
 */
const typeParsers: CustomTypesConfig = {
  getTypeParser: (oid, format) => {
    if (format !== 'binary' && oid === INT8) return Number
    if (format !== 'binary' && oid === DATE) return (value: string) => value
    return types.getTypeParser(oid, format)
  },
}
