// The records of personal API tokens, for the authentication guard and the owner's endpoints.
import type { CoalescingQueue } from '../../async/coalescing-queue.ts'
import { type Database, prepared, type Queryable, type TransactionStep } from '../../storage/database.ts'
import { changeOfUser, lockUser } from '../../users/user-record-store.ts'

/** An API token that is not revoked; its owner may be inactive. */
export interface ActiveApiToken {
  apiTokenId: number
  userId: number
}

export interface ApiTokenStore {
  findActive(tokenHash: string): Promise<ActiveApiToken | undefined>
  /** @param tx a transaction, if within one */
  isActive(apiTokenId: number, tx?: Queryable): Promise<boolean>
  /**
   * Records the time of a use, unless a later one is recorded. One by more than a minute was recorded under a clock that
   * was ahead, and does not count.
   */
  recordUse(apiTokenId: number, usedAt: Date): Promise<void>
  /**
   * Stores a user's new API token and revokes the previous one, in one transaction. Of concurrent calls all succeed,
   * and the last one's token is active. Returns `user_gone`, and changes nothing, when the user was deleted or
   * deactivated in the meantime, so that no token becomes usable when the account is reactivated. Ignores the plan: a
   * token outlives its user's plan (spec §5), and a downgrade applies from the next request on.
   * @param now stored as `created_at`
   * @param precondition run once the user is locked; what it throws leaves everything as it was
   */
  replace(
    userId: number,
    tokenHash: string,
    now: Date,
    precondition?: TransactionStep,
  ): Promise<{ created_at: Date } | 'user_gone'>
  /**
   * Revokes the user's active API token, if there is one.
   * @param inTransaction stored with it @returns whether the user exists, where `inTransaction` is given
   */
  revoke(userId: number, inTransaction?: TransactionStep): Promise<boolean>
}

/**
 * Every method throws StorageError when the store fails.
 * @param perUser waiting for a user's row lock occupies a connection: in the queue only one call of a user waits so
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

    // Locks the user first, in a statement of its own: a statement that had waited for another replica's commit would
    // not see the token stored there, and the unique index would refuse a second active one. FOR NO KEY UPDATE is the
    // weakest lock that excludes itself: logins and refreshes (KEY SHARE) continue. A deletion also locks the user
    // before the tokens, so the two cannot deadlock.
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

/** Revokes the user's active API token, if there is one. */
export async function revokeApiToken(queryable: Queryable, userId: number): Promise<void> {
  await queryable.query('update api_tokens set revoked = 1 where user_id = $1 and revoked = 0', [userId])
}

const FIND_ACTIVE = prepared('select id, user_id from api_tokens where token_hash = $1 and revoked = 0')
