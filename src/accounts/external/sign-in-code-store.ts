// Stores the codes that the gateway issues after a sign-in with another provider. Also stores the ID tokens that were
// already used.
import { countRows, type Database, type Queryable } from '../../storage/database.ts'
import type { ExternalPerson, UsableIdToken } from '../../users/external-person.ts'

/** The data of a code. It is kept until the page exchanges the code for a session. */
export interface SignInCode {
  readonly person: ExternalPerson
  /** The name of the provider. */
  readonly provider: string
  /** The S256 code challenge that the page sent (RFC 7636). */
  readonly codeChallenge: string
  readonly idToken: UsableIdToken
}

/** Every method throws StorageError when the store fails. `codeHash` is the SHA-256 of the code in hex. */
export interface SignInCodeStore {
  add(codeHash: string, code: SignInCode, now: Date): Promise<void>
  /** Finds a code. Undefined if the code was used, has expired, or has no tries left. */
  find(codeHash: string, now: Date): Promise<SignInCode | undefined>
  /** Counts one try of a password. Call it before the check. @returns false if the code is no longer valid */
  countTry(codeHash: string, now: Date): Promise<boolean>
  /** Takes back a counted try. Call it unless the password was wrong, because only wrong passwords count. */
  uncountTry(codeHash: string): Promise<void>
  /** Extends the code's validity to 10 minutes after its creation, so that the user has time to type a password. */
  extend(codeHash: string): Promise<void>
  delete(codeHash: string): Promise<void>
  /** Deletes a code in the transaction that opens its session. @returns false if the code is no longer valid */
  spendCode(tx: Queryable, codeHash: string, now: Date): Promise<boolean>
  /** Marks an ID token as used. @returns false if the token was already used */
  spendIdToken(tx: Queryable, idToken: UsableIdToken): Promise<boolean>
  /**
   * Deletes up to `limit` expired codes, and up to `limit` expired ID tokens.
   * @returns the number of deleted codes or of deleted tokens, whichever is greater
   */
  prune(now: Date, limit: number): Promise<number>
}

export function createSignInCodeStore(database: Database): SignInCodeStore {
  return {
    async add(codeHash, { person, provider, codeChallenge, idToken }, now) {
      await database.query(
        `insert into sign_in_codes (code_hash, code_challenge, provider, issuer, sub, email, id_token_hash,
           id_token_expires_at, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
        [
          codeHash,
          codeChallenge,
          provider,
          person.issuer,
          person.sub,
          person.email ?? null,
          idToken.hash,
          idToken.tooOldAt,
          now,
          new Date(now.getTime() + codeTtlMs),
        ],
      )
    },

    async find(codeHash, now) {
      const [row] = await database.query<CodeRow>(
        `select code_challenge, provider, issuer, sub, email, id_token_hash, id_token_expires_at
           from sign_in_codes where code_hash = $1 and expires_at > $2 and tries < ${mostTries}`,
        [codeHash, now],
      )
      return row && codeOf(row)
    },

    async countTry(codeHash, now) {
      const counted = await database.query(
        `update sign_in_codes set tries = tries + 1
          where code_hash = $1 and expires_at > $2 and tries < ${mostTries} returning code_hash`,
        [codeHash, now],
      )
      return counted.length > 0
    },

    async uncountTry(codeHash) {
      await database.query('update sign_in_codes set tries = tries - 1 where code_hash = $1 and tries > 0', [
        codeHash,
      ])
    },

    async extend(codeHash) {
      await database.query(
        `update sign_in_codes set expires_at = created_at + interval '10 minutes' where code_hash = $1`,
        [codeHash],
      )
    },

    async delete(codeHash) {
      await database.query('delete from sign_in_codes where code_hash = $1', [codeHash])
    },

    async spendCode(tx, codeHash, now) {
      const spent = await tx.query(
        'delete from sign_in_codes where code_hash = $1 and expires_at > $2 returning code_hash',
        [codeHash, now],
      )
      return spent.length > 0
    },

    async spendIdToken(tx, { hash, tooOldAt }) {
      const stored = await tx.query(
        `insert into used_id_tokens (token_hash, expires_at) values ($1, $2)
         on conflict do nothing returning token_hash`,
        [hash, tooOldAt],
      )
      return stored.length > 0
    },

    async prune(now, limit) {
      const pruneTable = (table: string, key: string) =>
        countRows(
          database,
          `delete from ${table} where ${key} in (
             select ${key} from ${table} where expires_at <= $1 limit $2 for update skip locked
           ) returning ${key}`,
          [now, limit],
        )
      return Math.max(
        await pruneTable('sign_in_codes', 'code_hash'),
        await pruneTable('used_id_tokens', 'token_hash'),
      )
    },
  }
}

const codeTtlMs = 60_000
/** The number of wrong passwords after which a code is invalid. */
const mostTries = 5

interface CodeRow {
  readonly code_challenge: string
  readonly provider: string
  readonly issuer: string
  readonly sub: string
  readonly email: string | null
  readonly id_token_hash: string
  readonly id_token_expires_at: Date
}

function codeOf(row: CodeRow): SignInCode {
  return {
    person: { issuer: row.issuer, sub: row.sub, email: row.email ?? undefined },
    provider: row.provider,
    codeChallenge: row.code_challenge,
    idToken: { hash: row.id_token_hash, tooOldAt: row.id_token_expires_at },
  }
}
