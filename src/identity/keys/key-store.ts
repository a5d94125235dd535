// Stores the signing keys that replicas share. A `private_jwk` is plain JSON or sealed (encrypted, see sealer.ts).
import type { Database } from '../../storage/database.ts'
import { type Column, createSealedColumn } from '../sealed-column-store.ts'

export interface StoredKey {
  kid: string
  private_jwk: string
  created_at: Date
  /** `null` for a key that only verifies. The key whose `signs_from` passed most recently is the key that signs. */
  signs_from: Date | null
  /** The time of the read. All times come from the database's clock, because the replicas' clocks may differ. */
  read_at: Date
}

export interface KeyStore {
  /** Returns all keys, sorted by `signs_from`, latest first. The keys that only verify come last. */
  all(): Promise<StoredKey[]>
  /**
   * Stores a key that signs immediately. If another key signs already, nothing is stored, so only one of several
   * concurrent replicas stores a key.
   */
  addFirst(kid: string, privateJwk: string): Promise<void>
  /** Stores a key that only verifies. */
  add(kid: string, privateJwk: string): Promise<void>
  /** Stores a key that signs after `delayMs`. If no key signs now, the new key signs immediately. */
  addSigning(kid: string, privateJwk: string, delayMs: number): Promise<void>
  /** Schedules a key to sign after `delayMs`. @returns whether the key exists */
  letSign(kid: string, delayMs: number): Promise<boolean>
  /** Deletes a key if its `signs_from` still equals `signsFrom`. @returns whether it was deleted */
  remove(kid: string, signsFrom: Date | null): Promise<boolean>
  /** Replaces a key's text if it still equals `from`. @returns whether it was replaced */
  replaceText(kid: string, from: string, to: string): Promise<boolean>
}

export const privateJwks: Column = {
  table: 'signing_keys',
  key: 'kid',
  type: 'text',
  column: 'private_jwk',
  context: kid => kid,
}

/** Every method throws StorageError when the store fails. */
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
        // `now()` is the start of this transaction. While the transaction waited for the lock, the previous holder of
        // the lock may have stored a key that signs from a later time. So the condition uses `clock_timestamp()`.
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
      // A timestamp has microseconds, but a `Date` only milliseconds, so the comparison uses milliseconds.
      const rows = await database.query(
        `delete from signing_keys
          where kid = $1 and date_trunc('milliseconds', signs_from) is not distinct from $2 returning kid`,
        [kid, signsFrom],
      )
      return rows.length === 1
    },

    replaceText: createSealedColumn(database, privateJwks).replace,
  }
}
