// Provides the keys that codes and tokens are derived with. They come from `auth.key_secret`, or from the database if
// that is not set.
import { randomBytes } from 'node:crypto'
import type { Sealer } from '../../identity/sealer.ts'
import type { Queryable } from '../../storage/database.ts'

/** The key for new codes comes first. @throws StorageError if the key in the database is not known yet */
export type CodeKeys = () => Promise<readonly Buffer[]>

/**
 * With `auth.key_secret`, the key in the database is never used, because a reader of the database could create any code
 * with it.
 */
export function createCodeKeys(database: Queryable, sealer: Sealer | undefined): CodeKeys {
  if (sealer !== undefined) {
    const keys = sealer.keysFor('account codes')
    return async () => keys
  }
  let stored: Promise<readonly Buffer[]> | undefined
  return () => {
    stored ??= readKey(database).catch((error: unknown) => {
      stored = undefined
      throw error
    })
    return stored
  }
}

/** If concurrent replicas create keys, the first key is kept. */
async function readKey(database: Queryable): Promise<readonly Buffer[]> {
  await database.query('insert into account_code_key (key) values ($1) on conflict (only_row) do nothing', [
    randomBytes(32).toString('base64'),
  ])
  const rows = await database.query<{ key: string }>('select key from account_code_key')
  return rows.map(({ key }) => Buffer.from(key, 'base64'))
}
