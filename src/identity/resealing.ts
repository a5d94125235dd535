// Seals stored secrets with `auth.key_secret`, if they are in plain text or sealed with `auth.key_secret_old`. Gateways
// may keep running in the meantime.
import type { SealedColumn } from './sealed-column-store.ts'
import { isSealed, type Sealer } from './sealer.ts'

export interface Resealed {
  readonly resealed: number
  /** The number of rows that were already sealed with `auth.key_secret`. */
  readonly already: number
  /** The primary keys of the rows that neither secret can decrypt. These rows stay unchanged. */
  readonly unreadable: readonly string[]
}

/**
 * Seals the secrets in these columns with `auth.key_secret`. If another process changes a row at the same time, reads
 * the row again and does not overwrite the change. The call can be repeated.
 * @throws StorageError; rows resealed so far stay resealed
 */
export async function reseal(columns: readonly SealedColumn[], sealer: Sealer): Promise<Resealed> {
  let resealed = 0
  let already = 0
  const unreadable = new Set<string>()

  async function resealRow(column: SealedColumn, key: string, found: string): Promise<void> {
    const context = column.context(key)
    for (let text: string | undefined = found; text !== undefined; text = await column.read(key)) {
      if (sealer.isCurrent(text, context)) {
        already += 1
        return
      }
      const plain = isSealed(text) ? sealer.open(text, context) : text
      if (plain === undefined) {
        unreadable.add(key)
        return
      }
      if (await column.replace(key, text, sealer.seal(plain, context))) {
        resealed += 1
        return
      }
    }
  }

  for (const column of columns) {
    let rows = await column.after(undefined, pageSize)
    while (rows.length > 0) {
      for (const { key, text } of rows) await resealRow(column, key, text)
      rows = await column.after(rows.at(-1)?.key, pageSize)
    }
  }
  return { resealed, already, unreadable: [...unreadable] }
}

/** The maximum number of rows in memory at a time. */
const pageSize = 500
