// Stores the records of personal API tokens, for the authentication guard and the owner's endpoints.
import type { CoalescingQueue } from '../../async/coalescing-queue.ts'
import { type Database, prepared, type Queryable, type TransactionStep } from '../../storage/database.ts'
import { changeOfUser, lockUser } from '../../users/user-record-store.ts'

/** An API token that is not revoked. Its owner may be inactive. */
export interface ActiveApiToken {
  apiTokenId: number
  userId: number
}

export interface ApiTokenStore {
  findActive(tokenHash: string): Promise<ActiveApiToken | undefined>
  isActive(apiTokenId: number, tx?: Queryable): Promise<boolean>
  /**
   * Records the time of a use, unless a later time is already recorded. If the recorded time is more than a minute
   * later, it came from a wrong clock, so it is replaced.
   */
  recordUse(apiTokenId: number, usedAt: Date): Promise<void>
  /**
   * Stores a user's new API token and revokes the previous one, in one transaction. Concurrent calls all succeed, and
   * the token of the last call is active. Returns `user_gone`, without a change, if the user was deleted or deactivated
   * in the meantime. Otherwise the stored token would become usable when the account is reactivated. Does not check the
   * plan, because a token stays valid through plan changes.
   * @param now stored as `created_at`
   * @param precondition runs after the user is locked; if it throws, nothing is changed
   */
  replace(
    userId: number,
    tokenHash: string,
    now: Date,
    precondition?: TransactionStep,
  ): Promise<{ created_at: Date } | 'user_gone'>
  /** @returns whether the user exists; without `inTransaction` always true */
  revoke(userId: number, inTransaction?: TransactionStep): Promise<boolean>
}

/**
 * Every method throws StorageError when the store fails.
 * @param perUser a queue that lets only one call per user wait for the lock of the user's row, because a waiting call
 *   occupies a connection
 */
export function createApiTokenStore(database: Database, perUser: CoalescingQueue<number>): ApiTokenStore {
  return {
    async findActive(tokenHash) {
      const [row] = await database.query<{ id: number; user_id: number }>(FIND_ACTIVE, [tokenHash])
      return row && { apiTokenId: row.id, userId: row.user_id }
    },

    async isActive(apiTokenId, tx = database) {
      const rows = await tx.query('select from api_tokens where id = $1 and revoked = 0', [apiTokenId])
      return rows.length > 0
    },

    async recordUse(apiTokenId, usedAt) {
      await database.query(
        `update api_tokens set last_used_at = $2::timestamptz
          where id = $1
            and (last_used_at is null or last_used_at < $2 or last_used_at > $2 + interval '1 minute')`,
        [apiTokenId, usedAt],
      )
    },

    // The user is locked first, in a separate statement. A single statement could wait for another replica's commit
    // without seeing the token stored there. The unique index would then refuse a second active token. FOR NO KEY
    // UPDATE is the weakest lock that excludes itself, so logins and refreshes (KEY SHARE) continue. A deletion also
    // locks the user before the tokens, so it cannot deadlock with this transaction.
    replace: (userId, tokenHash, now, precondition) =>
      perUser.run(userId, () =>
        database.transaction(async tx => {
          if ((await lockUser(tx, userId))?.is_active !== 1) return 'user_gone'
          await precondition?.(tx)
          await revokeApiToken(tx, userId)
          await tx.query('insert into api_tokens (user_id, token_hash, created_at) values ($1, $2, $3)', [
            userId,
            tokenHash,
            now,
          ])
          return { created_at: now }
        }),
      ),

    revoke: (userId, inTransaction) =>
      perUser.run(userId, () =>
        changeOfUser(database, userId, inTransaction, tx => revokeApiToken(tx, userId)),
      ),
  }
}

export async function revokeApiToken(queryable: Queryable, userId: number): Promise<void> {
  await queryable.query('update api_tokens set revoked = 1 where user_id = $1 and revoked = 0', [userId])
}

const FIND_ACTIVE = prepared('select id, user_id from api_tokens where token_hash = $1 and revoked = 0')
