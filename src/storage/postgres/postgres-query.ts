// Runs a single statement on a pooled connection: the path of most database queries.
import type { Pool, QueryResult } from 'pg'
import { type Queryable, StorageError } from '../database.ts'
import { toStorageError } from '../driver-error.ts'

/** Together with the connection time, a request with storage down gets its response within 2 s (CONTRACT §4). */
export const STATEMENT_TIMEOUT_MS = 1_000

/** SQLSTATEs: prepared statement missing, duplicate, or prepared before a migration changed its result types. */
const UNPREPARED_STATES = new Set(['26000', '42P05', '0A000'])

/**
 * Uses pg's callbacks, and named statements for prepared queries: promises and unnamed statements would double our
 * own cost per query.
 */
export function createQuery(pool: Pool): Queryable['query'] {
  let mayPrepare = true
  return async (sql, values = []) => {
    const { text, name } = typeof sql === 'string' ? { text: sql } : sql
    const statement = { text, values: [...values], query_timeout: STATEMENT_TIMEOUT_MS }
    if (name === undefined || !mayPrepare) return runStatement(pool, statement)
    try {
      return await runStatement(pool, { ...statement, name })
    } catch (error) {
      // A transaction pooler hands out another connection each time. The failed statement has changed nothing.
      if (!(error instanceof StorageError && UNPREPARED_STATES.has(error.code ?? ''))) throw error
      mayPrepare = false
      return runStatement(pool, statement)
    }
  }
}

export interface Statement {
  text: string
  values: unknown[]
  name?: string
  /** pg supports it per query, but its types do not declare it. */
  query_timeout: number
}

function runStatement<Row extends object>(pool: Pool, statement: Statement): Promise<Row[]> {
  return new Promise((resolve, reject) => {
    const onConnect: Parameters<typeof pool.connect>[0] = (error, client, release) => {
      if (client === undefined) {
        reject(toStorageError(error))
        return
      }
      let isLost = false
      // The pool handles errors of idle clients only: a terminated backend of a busy one would end the process.
      const onLost = () => {
        isLost = true
      }
      client.on('error', onLost)
      client.query(statement, (failure: Error | null, result: QueryResult<Row>) => {
        client.off('error', onLost)
        const wrapped = failure ? toStorageError(failure) : undefined
        if (wrapped !== undefined && isUnanswered(wrapped)) isLost = true
        release(isLost || client.getTransactionStatus() !== 'I')
        if (wrapped === undefined) resolve(result.rows)
        else reject(wrapped)
      })
    }
    try {
      pool.connect(onConnect)
    } catch (error) {
      // The address is invalid.
      reject(toStorageError(error))
    }
  })
}

/**
 * Whether the statement may still be running. No SQLSTATE: the error is not the server's, and a response may still
 * arrive. Class 57: the server timed out or is shutting down, and a rollback would only add another wait.
 */
export function isUnanswered({ code }: StorageError): boolean {
  return code === undefined || code.startsWith('57')
}
