// Checks out a pooled connection for several statements, watches it, and destroys it unless it is clean afterwards.
import type { Pool, PoolClient, QueryResult } from 'pg'
import { StorageError } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { isUnanswered, STATEMENT_TIMEOUT_MS, type Statement } from './postgres-query.ts'

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
  /** The connection is gone, or a response is still outstanding on it. */
  isLost: boolean
}

/** @throws StorageError */
export async function query<Row extends object>(
  checkedOut: CheckedOutClient,
  text: string,
  values: readonly unknown[] = [],
  timeoutMs = STATEMENT_TIMEOUT_MS,
) {
  if (checkedOut.isLost) throw new StorageError('database: connection lost', undefined, undefined)
  try {
    const statement: Statement = { text, values: [...values], query_timeout: timeoutMs }
    return (await checkedOut.client.query(statement)) as QueryResult<Row>
  } catch (error) {
    const wrapped = toStorageError(error)
    if (isUnanswered(wrapped)) checkedOut.isLost = true
    throw wrapped
  }
}
