// Defines the database interface of the program: statements, transactions, and one type of error.
import { hash } from 'node:crypto'

/** A statement that each connection prepares once. Use it for queries that nearly every request makes. */
export interface Prepared {
  readonly text: string
  /**
   * The name is derived from `text`, so one name never identifies two different statements. This matters during an
   * upgrade. A pooler may then give the same server connection to two versions of the program.
   */
  readonly name: string
}

export function prepared(text: string): Prepared {
  return { text, name: `peage_${hash('sha256', text, 'hex').slice(0, 16)}` }
}

export function textOf(sql: string | Prepared): string {
  return typeof sql === 'string' ? sql : sql.text
}

/**
 * Runs single statements. Returns each timestamp as a `Date`, each `date` as text (`YYYY-MM-DD`), and each `bigint` as
 * a number.
 */
export interface Queryable {
  /** @throws StorageError if the statement fails; its `code` shows the reason, for example a violated constraint */
  query<Row extends object>(sql: string | Prepared, values?: readonly unknown[]): Promise<Row[]>
}

/** Postgres, embedded or on a server. */
export interface Database extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /**
   * Runs `work` in one transaction. Commits when `work` resolves, and rolls back when it throws. Inside `work`, send
   * queries only through `tx`. On the embedded database, any other query would wait forever.
   * @param options.timeoutMs the timeout of each statement, if the default of one second is too short
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: { timeoutMs: number }): Promise<T>
  close(): Promise<void>
}

/** Runs a statement that returns one row per affected record. @returns the number of rows */
export async function countRows(
  queryable: Queryable,
  sql: string,
  values: readonly unknown[],
): Promise<number> {
  return (await queryable.query(sql, values)).length
}

/** An additional step in the transaction of a change. If the step throws, the change is rolled back. */
export type TransactionStep = (tx: Queryable) => Promise<void>

/** Returns whether the error is a failure of the database, not of the calling code. */
export const isStorageError = (error: unknown): boolean => error instanceof StorageError

/** The store failed to execute a statement. `code` is the SQLSTATE if the server sent one. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: string | undefined

  constructor(message: string, code: string | undefined, cause: unknown) {
    super(message, { cause })
    this.code = code
  }
}
