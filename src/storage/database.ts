// What the rest of the program knows of a database: statements, transactions, and one kind of failure.
import { hash } from 'node:crypto'

/** A statement that a connection prepares once: for what is asked at nearly every request. */
export interface Prepared {
  readonly text: string
  /** Another text has another name, also where a pooler lends one connection to two versions of the program. */
  readonly name: string
}

export function prepared(text: string): Prepared {
  return { text, name: `peage_${hash('sha256', text, 'hex').slice(0, 16)}` }
}

/** Runs one statement at a time. Timestamps come back as `Date`, `date` as `YYYY-MM-DD`, bigint as number. */
export interface Queryable {
  /**
   * Runs one parameterised statement and returns its rows.
   * @throws StorageError whatever went wrong: refused, timed out, or a violated constraint (see its `code`)
   */
  query<Row extends object>(sql: string | Prepared, values?: readonly unknown[]): Promise<Row[]>
}

/** A Postgres, embedded or not. */
export interface Database extends Queryable {
  readonly kind: 'postgres' | 'embedded'
  /**
   * Runs `work` in one transaction: committed when it resolves, rolled back when it throws.
   * Inside, use only the `tx` that is handed in: on the embedded database any other query would wait for ever.
   * @param options.patience milliseconds that each statement may take, where a second is too short
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: { timeoutMs: number }): Promise<T>
  close(): Promise<void>
}

/** Stores something beside a change, in the same transaction: both stand, or neither. */
export type TransactionStep = (tx: Queryable) => Promise<void>

/** The store did not do what it was asked; `code` is the SQLSTATE where the server named one. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: string | undefined

  constructor(message: string, code: string | undefined, cause: unknown) {
    super(message, { cause })
    this.code = code
  }

  /** SQLSTATE 23505: a row with that key stands already. */
  get isUniqueViolation(): boolean {
    return this.code === '23505'
  }
}
