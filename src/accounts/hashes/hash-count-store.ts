// Counts how many users have a password hash of each format.
import type { Database } from '../../storage/database.ts'
import { type HashFormat, noHash } from './foreign-hash.ts'

export interface HashCount {
  /** `none` for users without a password, and `other` for hashes in any other format. */
  readonly format: HashFormat | 'none' | 'other'
  /** The number of users, including inactive users. */
  readonly users: number
}

export interface HashCountStore {
  /**
   * Counts the users of each format. The format with the most users comes first. The SQL statement reads all users.
   * @throws StorageError if the statement takes longer than `timeoutMs`
   */
  count(timeoutMs: number): Promise<HashCount[]>
}

export function createHashCountStore(database: Database): HashCountStore {
  return {
    count: timeoutMs => database.transaction(tx => tx.query<HashCount>(countSql, [noHash]), { timeoutMs }),
  }
}

const countSql = `
  select case
           when password_hash = $1 then 'none'
           when password_hash like '$argon2id$%' then 'argon2id'
           when password_hash like '$argon2i$%' then 'argon2i'
           when password_hash ~ '^\\$2[aby]\\$' then 'bcrypt'
           when password_hash ~ '^(\\$pbkdf2-sha256|pbkdf2_sha256)\\$' then 'pbkdf2_sha256'
           when password_hash like '$pbkdf2-sha512$%' then 'pbkdf2_sha512'
           when password_hash like '$scrypt$%' then 'scrypt'
           when password_hash like '$fbscrypt$%' then 'fbscrypt'
           else 'other'
         end as format,
         count(*) as users
    from users
   group by 1
   order by users desc, format`
