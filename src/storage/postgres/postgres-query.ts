// Runs statements on pooled connections. If a connection cannot be reused after a statement, it is destroyed.
import type { Pool, PoolClient, QueryResult } from 'pg'
import { type Prepared, type Queryable, StorageError, textOf } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { withTimeout } from './pg-internals.ts'

/**
 * The time limit of a statement. With this limit and the connection timeout, a request waits at most 2 s while storage
 * is down.
 */
export const STATEMENT_TIMEOUT_MS = 1_000

/**
 * SQLSTATEs for a prepared statement that does not exist, that already exists, or whose types a migration has changed.
 */
const UNPREPARED_STATES = new Set(['26000', '42P05', '0A000'])

/** The SQLSTATE read_only_sql_transaction. A session stays read-only if it began on a read-only server. */
export const READ_ONLY = '25006'

/**
 * Creates the function that runs single statements. Each call uses a connection of the pool. Most database queries use
 * this function.
 */
export function createQuery(pool: Pool): Queryable['query'] {
  let mayPrepare = true
  return async <Row extends object>(sql: string | Prepared, values?: readonly unknown[]) => {
    const run = (statement: string | Prepared) =>
      withClient(pool, async client => (await query<Row>(client, statement, values)).rows)
    if (typeof sql === 'string' || !mayPrepare) return run(textOf(sql))
    try {
      return await run(sql)
    } catch (error) {
      // A transaction pooler may use a server connection that does not have the prepared statement. The failed
      // statement has changed nothing, so it is sent again as plain SQL.
      if (!(error instanceof StorageError && UNPREPARED_STATES.has(error.code ?? ''))) throw error
      mayPrepare = false
      return run(sql.text)
    }
  }
}

/** Checks out a client for `work`. A client that may be busy, broken or in a transaction is destroyed, not reused. */
export async function withClient<T>(pool: Pool, work: (client: CheckedOutClient) => Promise<T>): Promise<T> {
  let client: PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw toStorageError(error)
  }
  const checkedOut: CheckedOutClient = { client, isLost: false }
  // The pool handles errors only of idle clients. Without this listener, an error of a busy client would end the
  // process.
  const onLost = () => {
    checkedOut.isLost = true
  }
  client.on('error', onLost)
  try {
    return await work(checkedOut)
  } finally {
    client.off('error', onLost)
    client.release(checkedOut.isLost || client.getTransactionStatus() !== 'I')
  }
}

export interface CheckedOutClient {
  readonly client: PoolClient
  /** The connection must not be reused, because it is lost, still waits for a response, or has a read-only session. */
  isLost: boolean
}

/** @throws StorageError */
export async function query<Row extends object>(
  checkedOut: CheckedOutClient,
  sql: string | Prepared,
  values: readonly unknown[] = [],
  timeoutMs = STATEMENT_TIMEOUT_MS,
) {
  if (checkedOut.isLost) throw new StorageError('database: connection lost', undefined, undefined)
  const { text, name } = typeof sql === 'string' ? { text: sql } : sql
  const statement = withTimeout(
    { text, ...(name === undefined ? {} : { name }), values: [...values] },
    timeoutMs,
  )
  try {
    return (await checkedOut.client.query(statement)) as QueryResult<Row>
  } catch (error) {
    const wrapped = toStorageError(error)
    if (isUnanswered(wrapped) || wrapped.code === READ_ONLY) checkedOut.isLost = true
    throw wrapped
  }
}

/**
 * Returns whether the statement ended without a regular response. Without a SQLSTATE, the error is not from the server,
 * so the server may still be running the statement. With a SQLSTATE of class 57, the statement timed out or the server
 * is shutting down. In both cases, no rollback is sent, because it would only add another wait.
 */
function isUnanswered({ code }: StorageError): boolean {
  return code === undefined || code.startsWith('57')
}
