// Provides the keys for codes in mails, and for cookies during a sign-in with an identity provider. If
// `auth.key_secret` is set, the keys are derived from it. Otherwise, they come from the database.
import { hkdfSync, randomBytes } from 'node:crypto'
import type { Sealer } from '../../identity/sealer.ts'
import type { Queryable } from '../../storage/database.ts'

/**
 * Returns keys of 32 bytes each. The first key is for new codes.
 * @throws StorageError if the key must come from the database and cannot be read
 */
export type CodeKeys = () => Promise<readonly Buffer[]>

/**
 * If `auth.key_secret` is set, the key in the database is never used, because anyone who can read the database could
 * derive every code from this key.
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
 * Returns the keys that encrypt the cookies during a sign-in. They are derived only for this purpose, so that a leaked
 * cookie key does not reveal the codes in mails.
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
 * Reads the key from the database. If there is no key, one is created first. If several replicas create a key at the
 * same time, all of them use the key that was stored first.
 */
async function readKey(database: Queryable): Promise<readonly Buffer[]> {
  await database.query('insert into account_code_key (key) values ($1) on conflict (only_row) do nothing', [
    randomBytes(32).toString('base64'),
  ])
  const rows = await database.query<{ key: string }>('select key from account_code_key')
  return rows.map(({ key }) => Buffer.from(key, 'base64'))
}
