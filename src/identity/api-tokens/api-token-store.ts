// The records of personal API tokens, as the guard and their owner's endpoints use them.

import { createKeyedMutex } from '../../async/keyed-mutex.ts'
import { type Database, prepared } from '../../storage/database.ts'

/** A key that was not revoked, whoever it is of. */
export interface ActiveApiToken {
  apiTokenId: number
  userId: number
}

export interface ApiTokenStore {
  findActive(tokenHash: string): Promise<ActiveApiToken | undefined>
  /** Notes the time of a use, unless a later one is noted. */
  recordUse(apiTokenId: number, usedAt: Date): Promise<void>
  /**
   * Stores a user's new key and revokes the one before, in one transaction. Of any number at once each succeeds and
   * the last of them is live. `user_gone` where the user was deleted or deactivated in the meantime: nothing is
   * changed then, so that no key comes to life when the account does. The plan is not looked at: a key outlives
   * its user's plan (spec §5), and a plan that falls counts from the next request on.
   * @param now stands in the record as `created_at`
   */
  replace(userId: number, tokenHash: string, now: Date): Promise<{ created_at: Date } | 'user_gone'>
  /** Revokes the user's live key, where there is one. */
  revoke(userId: number): Promise<void>
}

/** Every method throws StorageError where the store fails. */
export function createApiTokenStore(database: Database): ApiTokenStore {
  // A row's lock is waited for on a connection: one busy user would take the whole pool, and everybody else's guard.
  const userMutex = createKeyedMutex()
  return {
    async findActive(tokenHash) {
      const [row] = await database.query<{ id: number; user_id: number }>(FIND_ACTIVE, [tokenHash])
      return row && { apiTokenId: row.id, userId: row.user_id }
    },

    async recordUse(apiTokenId, usedAt) {
      await database.query(
        `update api_tokens set last_used_at = $2
          where id = $1 and (last_used_at is null or last_used_at < $2)`,
        [apiTokenId, usedAt],
      )
    },

    // Locked first, in a statement of its own: one that waited for another replica's commit would not see the key
    // that it stored, and the index would refuse a second live one. The lock is the weakest that excludes itself:
    // logins and refreshes (key share) go on. A deletion takes user before keys too, so neither waits for the other.
    replace: (userId, tokenHash, now) =>
      userMutex.run(userId, () =>
        database.transaction(async tx => {
          const locked = await tx.query(
            'select id from users where id = $1 and is_active = 1 for no key update',
            [userId],
          )
          if (locked.length === 0) return 'user_gone'
          await tx.query('update api_tokens set revoked = 1 where user_id = $1 and revoked = 0', [userId])
          await tx.query('insert into api_tokens (user_id, token_hash, created_at) values ($1, $2, $3)', [
            userId,
            tokenHash,
            now,
          ])
          return { created_at: now }
        }),
      ),

    async revoke(userId) {
      await database.query('update api_tokens set revoked = 1 where user_id = $1 and revoked = 0', [userId])
    },
  }
}

const FIND_ACTIVE = prepared('select id, user_id from api_tokens where token_hash = $1 and revoked = 0')
