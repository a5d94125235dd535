// Reads a column of sealed or plain secrets row by row. Replaces a secret only if it has not changed since it was read.
import type { Database } from '../storage/database.ts'

/** Describes a column. The names must be constants of the program, because they are inserted into SQL unescaped. */
export interface Column {
  readonly table: string
  /** The table's primary key. */
  readonly key: string
  readonly type: 'text' | 'bigint'
  readonly column: string
  context(key: string): string
}

interface SealedRow {
  readonly key: string
  readonly text: string
}

export interface SealedColumn {
  context(key: string): string
  /** Returns up to `limit` rows after `key`, in the order of the keys. Rows without a secret are skipped. */
  after(key: string | undefined, limit: number): Promise<SealedRow[]>
  /** Returns the current text of a row. Undefined if the row has no secret or was deleted. */
  read(key: string): Promise<string | undefined>
  /** Replaces a row's text if it still equals `from`. @returns whether it was replaced */
  replace(key: string, from: string, to: string): Promise<boolean>
}

/** Every method throws StorageError when the store fails. */
export function createSealedColumn(
  database: Database,
  { table, key: name, type, column, context }: Column,
): SealedColumn {
  const rows = `select ${name}::text as key, ${column} as text from ${table} where ${column} is not null`
  return {
    context,
    after: (key, limit) =>
      database.query<SealedRow>(
        `${rows} and ($1::${type} is null or ${name} > $1::${type}) order by ${name} limit $2`,
        [key ?? null, limit],
      ),
    async read(key) {
      const [row] = await database.query<SealedRow>(`${rows} and ${name} = $1::${type}`, [key])
      return row?.text
    },
    async replace(key, from, to) {
      const replaced = await database.query(
        `update ${table} set ${column} = $3 where ${name} = $1::${type} and ${column} = $2 returning ${name}`,
        [key, from, to],
      )
      return replaced.length === 1
    },
  }
}
