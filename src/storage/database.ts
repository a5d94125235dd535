// The database as the rest of the program sees it: statements, transactions, and one type of error.
import { hash } from 'node:crypto'

/** A statement that each connection prepares once, for queries made at nearly every request. */
export interface Prepared {
  readonly text: string
  /** Derived from the text: behind a pooler, two versions of the program may share one server connection. */
  readonly name: string
}

export function prepared(text: string): Prepared {
  return { text, name: `peage_${hash('sha256', text, 'hex').slice(0, 16)}` }
}

export function textOf(sql: string | Prepared): string {
  return typeof sql === 'string' ? sql : sql.text
}

/** Runs one statement at a time. Timestamps are returned as `Date`, `date` as `YYYY-MM-DD`, bigint as number. */
export interface Queryable {
  /**
   * Runs one parameterised statement and returns its rows.
   * @throws StorageError for every failure: refused, timed out, or a violated constraint (see its `code`)
   */
  query<Row extends object>(sql: string | Prepared, values?: readonly unknown[]): Promise<Row[]>
}

/** Postgres, embedded or a server. */
export interface Database extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it throws. Inside, use only the
   * given `tx`: on the embedded database any other query would wait forever.
   * @param options.timeoutMs for each statement, when the default of a second is too short
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: { timeoutMs: number }): Promise<T>
  close(): Promise<void>
}

/** Runs a statement that returns one row for each record it is about. @returns how many */
export async function countRows(
  queryable: Queryable,
  sql: string,
  values: readonly unknown[],
): Promise<number> {
  return (await queryable.query(sql, values)).length
}

/** Stores something along with a change, in the same transaction: both are stored, or neither. */
export type TransactionStep = (tx: Queryable) => Promise<void>

/** Whether the store failed, not the one who asked it. */
export const isStorageError = (error: unknown): boolean => error instanceof StorageError

/** The store failed to execute a request; `code` is the SQLSTATE if the server sent one. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: string | undefined

  constructor(message: string, code: string | undefined, cause: unknown) {
    super(message, { cause })
    this.code = code
  }
}
