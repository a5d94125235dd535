// A pool's connection lent to work of several statements: watched while it is lent, and destroyed where it is not clean.
import type { Pool, PoolClient, QueryResult } from 'pg'
import { StorageError } from '../database.ts'
import { storageError } from '../driver-error.ts'
import { isUnanswered, STATEMENT_TIMEOUT, type Statement } from './postgres-query.ts'

/** Lends a client to some work. One that may still be busy, in a transaction or broken is destroyed, not lent again. */
export async function withClient<T>(pool: Pool, work: (client: LentClient) => Promise<T>): Promise<T> {
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

export interface LentClient {
  readonly client: PoolClient
  /** Its connection is gone, or an answer is still outstanding on it. */
  lost: boolean
}

/** @throws StorageError */
export async function send<Row extends object>(
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
