// A column of secrets, sealed or plain: read row by row, each replaced only if it still equals what was read.
import type { Database } from '../storage/database.ts'

/** Constants of the program: they are inserted into SQL unescaped. */
export interface Column {
  readonly table: string
  /** The table's primary key. */
  readonly key: string
  readonly type: 'text' | 'bigint'
  readonly column: string
  /** The context that the secret of a key is sealed for. */
  context(key: string): string
}

interface SealedRow {
  readonly key: string
  readonly text: string
}

export interface SealedColumn {
  context(key: string): string
  /** The next rows in key order; rows without a secret are skipped. */
  after(key: string | undefined, limit: number): Promise<SealedRow[]>
  /** The current text of a row; undefined if it has no secret or is gone. */
  read(key: string): Promise<string | undefined>
  /** Replaces a row's text if it still equals `from`. @returns whether it did */
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
