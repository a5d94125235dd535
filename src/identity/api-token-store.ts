// The records of personal API tokens, as the guard uses them.
import type { User } from '../accounts/user.ts'
import { userColumns } from '../accounts/user-store.ts'
import type { Database } from '../backing/database.ts'

export interface KeyOwner {
  user: User
  keyId: number
}

export interface ApiTokenStore {
  /** The active user of a live key, by the key's hash (spec §5). */
  findOwner(tokenHash: string): Promise<KeyOwner | undefined>
  /** Notes the time of a use, unless a later one is noted. */
  touch(keyId: number, at: Date): Promise<void>
}

/** Every method throws StorageError where the store fails. */
export function createApiTokenStore(database: Database): ApiTokenStore {
  return {
    async findOwner(tokenHash) {
      const [row] = await database.query<User & { key_id: number }>(
        `select t.id as key_id, ${userColumns}
           from api_tokens t join users u on u.id = t.user_id
          where t.token_hash = $1 and t.revoked = 0 and u.is_active = 1`,
        [tokenHash],
      )
      if (row === undefined) return undefined
      const { key_id: keyId, ...user } = row
      return { user, keyId }
    },

    async touch(keyId, at) {
      await database.query(
        `update api_tokens set last_used_at = $2
          where id = $1 and (last_used_at is null or last_used_at < $2)`,
        [keyId, at],
      )
    },
  }
}
