// Runs statements on pooled connections: each is watched meanwhile, and destroyed unless it is clean afterwards.
import type { Pool, PoolClient, QueryResult } from 'pg'
import { type Prepared, type Queryable, StorageError, textOf } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { withTimeout } from './pg-internals.ts'

/** Together with the connection time, a request with storage down gets its response within 2 s (CONTRACT §4). */
export const STATEMENT_TIMEOUT_MS = 1_000

/** SQLSTATEs: prepared statement missing, duplicate, or prepared before a migration changed its result types. */
const UNPREPARED_STATES = new Set(['26000', '42P05', '0A000'])

/** SQLSTATE read_only_sql_transaction: a session keeps the setting that it began with. */
export const READ_ONLY = '25006'

/** A single statement on a connection of its own: the path of most database queries. */
export function createQuery(pool: Pool): Queryable['query'] {
  let mayPrepare = true
  return async <Row extends object>(sql: string | Prepared, values?: readonly unknown[]) => {
    const run = (statement: string | Prepared) =>
      withClient(pool, async client => (await query<Row>(client, statement, values)).rows)
    if (typeof sql === 'string' || !mayPrepare) return run(textOf(sql))
    try {
      return await run(sql)
    } catch (error) {
      // A transaction pooler hands out another connection each time. The failed statement has changed nothing.
      if (!(error instanceof StorageError && UNPREPARED_STATES.has(error.code ?? ''))) throw error
      mayPrepare = false
      return run(sql.text)
    }
  }
}

/** Checks out a client for `work`. A client that may be busy, in a transaction or broken is destroyed, not reused. */
export async function withClient<T>(pool: Pool, work: (client: CheckedOutClient) => Promise<T>): Promise<T> {
  let client: PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw toStorageError(error)
  }
  const checkedOut: CheckedOutClient = { client, isLost: false }
  // The pool handles errors of idle clients only: a terminated backend of a busy one would end the process.
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
  /** The connection is not to be used again: gone, a response outstanding on it, or its session may not write. */
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
 * Whether the statement may still be running. No SQLSTATE: the error is not the server's, and a response may still
 * arrive. Class 57: the server timed out or is shutting down, and a rollback would only add another wait.
 */
function isUnanswered({ code }: StorageError): boolean {
  return code === undefined || code.startsWith('57')
}
