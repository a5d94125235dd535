// The records of the signing keys that replicas share. A `private_jwk` is JSON, or sealed (sealed.ts).
import type { Database } from '../../storage/database.ts'
import type { Column } from '../sealed-column-store.ts'

export interface StoredKey {
  kid: string
  private_jwk: string
  created_at: Date
  /** `null`: it only verifies. Of those whose time has come, the one whose time came last signs. */
  signs_from: Date | null
  /** The time of the database, whose clock all times here are of: replicas need not agree on theirs. */
  read_at: Date
}

export interface KeyStore {
  /** The latest to sign first, then those that only verify. */
  all(): Promise<StoredKey[]>
  /** Stores a key that signs from now on, unless one does: of many replicas at once, one stores. */
  addFirst(kid: string, privateJwk: string): Promise<void>
  /** Stores a key that only verifies. */
  add(kid: string, privateJwk: string): Promise<void>
  /** Stores a key that signs in `delay` milliseconds; at once where none does. */
  addSigning(kid: string, privateJwk: string, delayMs: number): Promise<void>
  /** Lets a key sign in `delay` milliseconds. Whether there is such a key. */
  letSign(kid: string, delayMs: number): Promise<boolean>
  /** Deletes a key, unless it was given another turn to sign than `signsFrom`. Whether it did. */
  remove(kid: string, signsFrom: Date | null): Promise<boolean>
  /** Replaces a key's text where it is still `from`. */
  replaceText(kid: string, from: string, to: string): Promise<void>
}

/** Where their private parts stand. */
export const privateJwks: Column = {
  table: 'signing_keys',
  key: 'kid',
  type: 'text',
  column: 'private_jwk',
  context: kid => kid,
}

/** Every method throws StorageError where the store fails. */
export function createKeyStore(database: Database): KeyStore {
  return {
    all: () =>
      database.query<StoredKey>(
        `select kid, private_jwk, created_at, signs_from, now() as read_at from signing_keys
          order by signs_from desc nulls last, created_at desc, kid`,
      ),

    addFirst: (kid, privateJwk) =>
      database.transaction(async tx => {
        await tx.query('lock table signing_keys in share row exclusive mode')
        // `now()` is when the transaction began: whoever had the lock before may have begun later.
        await tx.query(
          `insert into signing_keys (kid, private_jwk, signs_from)
           select $1, $2, now() where not exists (select from signing_keys where signs_from <= clock_timestamp())`,
          [kid, privateJwk],
        )
      }),

    async add(kid, privateJwk) {
      await database.query('insert into signing_keys (kid, private_jwk) values ($1, $2)', [kid, privateJwk])
    },

    async addSigning(kid, privateJwk, delayMs) {
      await database.query(
        `insert into signing_keys (kid, private_jwk, signs_from)
         select $1, $2, case when exists (select from signing_keys where signs_from <= now())
                             then now() + $3::integer * interval '1 millisecond' else now() end`,
        [kid, privateJwk, delayMs],
      )
    },

    async letSign(kid, delayMs) {
      const rows = await database.query(
        `update signing_keys set signs_from = now() + $2::integer * interval '1 millisecond'
          where kid = $1 returning kid`,
        [kid, delayMs],
      )
      return rows.length === 1
    },

    async remove(kid, signsFrom) {
      // A Date has milliseconds, a timestamp microseconds.
      const rows = await database.query(
        `delete from signing_keys
          where kid = $1 and date_trunc('milliseconds', signs_from) is not distinct from $2 returning kid`,
        [kid, signsFrom],
      )
      return rows.length === 1
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
