// Defines the database interface of the program: statements, transactions, and one type of error.
import { hash } from 'node:crypto'

/** A statement that each connection prepares once, for queries that nearly every request makes. */
export interface Prepared {
  readonly text: string
  /**
   * Behind a pooler, two versions of the program may use the same server connection. The name is derived from the text,
   * so the versions never give one name to different statements.
   */
  readonly name: string
}

export function prepared(text: string): Prepared {
  return { text, name: `peage_${hash('sha256', text, 'hex').slice(0, 16)}` }
}

export function textOf(sql: string | Prepared): string {
  return typeof sql === 'string' ? sql : sql.text
}

/** Runs one statement at a time. Returns timestamps as `Date`, `date` as `YYYY-MM-DD`, and bigint as number. */
export interface Queryable {
  /** @throws StorageError for every failure: refused, timed out, or a violated constraint (see its `code`) */
  query<Row extends object>(sql: string | Prepared, values?: readonly unknown[]): Promise<Row[]>
}

/** Postgres, embedded or on a server. */
export interface Database extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /**
   * Runs `work` in one transaction. Commits when `work` resolves, and rolls back when it throws. Inside, use only the
   * given `tx`. On the embedded database, any other query would wait forever.
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

/** Stores something together with a change, in the same transaction. */
export type TransactionStep = (tx: Queryable) => Promise<void>

/** Returns whether the store caused the error, not the calling code. */
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
