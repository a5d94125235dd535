// The records of the signing keys that replicas share. A `private_jwk` is JSON, or sealed (sealed.ts).
import type { Database } from '../backing/database.ts'

export interface StoredKey {
  kid: string
  private_jwk: string
  is_signing: 0 | 1
}

export interface KeyStore {
  /** The one that signs first, then the youngest. */
  all(): Promise<StoredKey[]>
  /** Stores a key that signs, unless one does already: of many replicas at once, one stores. */
  addSigning(kid: string, privateJwk: string): Promise<void>
  /** Replaces a key's text where it is still `from`. */
  replaceText(kid: string, from: string, to: string): Promise<void>
}

/** Every method throws StorageError where the store fails. */
export function createKeyStore(database: Database): KeyStore {
  return {
    all: () =>
      database.query<StoredKey>(
        'select kid, private_jwk, is_signing from signing_keys order by is_signing desc, created_at desc, kid',
      ),

    async addSigning(kid, privateJwk) {
      await database.query(
        `insert into signing_keys (kid, private_jwk, is_signing) values ($1, $2, 1)
         on conflict do nothing`,
        [kid, privateJwk],
      )
    },

    async replaceText(kid, from, to) {
      await database.query('update signing_keys set private_jwk = $3 where kid = $1 and private_jwk = $2', [
        kid,
        from,
        to,
      ])
    },
  }
}
