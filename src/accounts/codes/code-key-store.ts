// Provides the keys for codes in mails and for the cookies of sign-ins. They come from `auth.key_secret` if it is set,
// otherwise from the database.
import { hkdfSync, randomBytes } from 'node:crypto'
import type { Sealer } from '../../identity/sealer.ts'
import type { Queryable } from '../../storage/database.ts'

/**
 * Returns the keys of 32 bytes, with the key for new codes first.
 * @throws StorageError if the key must come from the database and cannot be read
 */
export type CodeKeys = () => Promise<readonly Buffer[]>

/**
 * With `auth.key_secret`, the key in the database is never used. Anyone who can read the database could derive any code
 * from that key.
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

/**
 * Returns the keys that encrypt the cookies of sign-ins. They are derived separately, so that a key of one purpose is
 * useless for the other purpose.
 */
export function createCookieKeys(database: Queryable, sealer: Sealer | undefined): CodeKeys {
  if (sealer !== undefined) {
    const keys = sealer.keysFor(cookiePurpose)
    return async () => keys
  }
  const stored = createCodeKeys(database, undefined)
  return async () =>
    (await stored()).map(key => Buffer.from(hkdfSync('sha256', key, '', `peage ${cookiePurpose} v1`, 32)))
}

const cookiePurpose = 'sign-in cookies'

/**
 * Reads the key, and creates it first if there is none. If several replicas create a key at once, the first key is
 * kept.
 */
async function readKey(database: Queryable): Promise<readonly Buffer[]> {
  await database.query('insert into account_code_key (key) values ($1) on conflict (only_row) do nothing', [
    randomBytes(32).toString('base64'),
  ])
  const rows = await database.query<{ key: string }>('select key from account_code_key')
  return rows.map(({ key }) => Buffer.from(key, 'base64'))
}
