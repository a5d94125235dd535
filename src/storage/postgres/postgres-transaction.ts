// A pool's connection lent to work of several statements: watched while it is lent, and destroyed where it is not clean.
import type { Pool, PoolClient, QueryResult } from 'pg'
import { StorageError } from '../database.ts'
import { toStorageError } from '../driver-error.ts'
import { isUnanswered, STATEMENT_TIMEOUT_MS, type Statement } from './postgres-query.ts'

/** Lends a client to some work. One that may still be busy, in a transaction or broken is destroyed, not lent again. */
export async function withClient<T>(pool: Pool, work: (client: CheckedOutClient) => Promise<T>): Promise<T> {
  let client: PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    throw toStorageError(error)
  }
  const checkedOut: CheckedOutClient = { client, isLost: false }
  // The pool listens while a client is idle; while it is lent a terminated backend would end the process.
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
  /** Its connection is gone, or an answer is still outstanding on it. */
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
