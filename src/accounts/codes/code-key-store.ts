// The keys that codes and tokens are derived under: of `auth.key_secret`, or one that is kept in the database.
import { randomBytes } from 'node:crypto'
import type { Sealer } from '../../identity/sealer.ts'
import type { Queryable } from '../../storage/database.ts'

/**
 * The key to derive under, and after it those that what was mailed before may be derived under.
 * @throws StorageError if the key in the database is not known yet
 */
export type CodeKeys = () => Promise<readonly Buffer[]>

/**
 * With `auth.key_secret` the database's key is never used: whoever reads the database could make any code with it.
 * @param sealer undefined unless `auth.key_secret` is set
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

/** Of the keys that concurrent replicas make, the first is kept. */
async function readKey(database: Queryable): Promise<readonly Buffer[]> {
  await database.query('insert into account_code_key (key) values ($1) on conflict (only_row) do nothing', [
    randomBytes(32).toString('base64'),
  ])
  const rows = await database.query<{ key: string }>('select key from account_code_key')
  return rows.map(({ key }) => Buffer.from(key, 'base64'))
}
