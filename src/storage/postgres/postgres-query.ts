// A statement of its own on a pool's connection: what most requests that ask the database ask.
import type { Pool, QueryResult } from 'pg'
import { type Queryable, StorageError } from '../database.ts'
import { toStorageError } from '../driver-error.ts'

/** Milliseconds; with what a connection takes, storage down is answered within 2 s (CONTRACT §4). */
export const STATEMENT_TIMEOUT_MS = 1_000

/**
 * SQLSTATE of a prepared statement that is not there, of one that is there already, and of one that was prepared before
 * a migration changed the type of what it answers.
 */
const UNPREPARED_STATES = new Set(['26000', '42P05', '0A000'])

/** In callbacks, and prepared where it is asked for: with promises and without, it takes twice the time on our side. */
export function createQuery(pool: Pool): Queryable['query'] {
  let mayPrepare = true
  return async (sql, values = []) => {
    const { text, name } = typeof sql === 'string' ? { text: sql } : sql
    const statement = { text, values: [...values], query_timeout: STATEMENT_TIMEOUT_MS }
    if (name === undefined || !mayPrepare) return runStatement(pool, statement)
    try {
      return await runStatement(pool, { ...statement, name })
    } catch (error) {
      // A pooler between us hands out another connection each time. What failed so has changed nothing.
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
  /** Milliseconds; pg knows it for each query, and its types do not. */
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
      // The pool listens while a client is idle; while it is lent a terminated backend would end the process.
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
      // An address that is none.
      reject(toStorageError(error))
    }
  })
}

/**
 * No SQLSTATE: not the server's word, and what it was asked may still run and answer. Class 57: the server timed out
 * or is going away; a rollback would only be one more wait.
 */
export function isUnanswered({ code }: StorageError): boolean {
  return code === undefined || code.startsWith('57')
}
