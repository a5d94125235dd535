// Stores the key of `/api/v1/user/api-token`. A user has at most one such key.
import type { CoalescingQueue } from '../../async/coalescing-queue.ts'
import { countRows, type Database, type Queryable, type TransactionStep } from '../../storage/database.ts'
import type { RecordUserChanges } from '../../users/user-change.ts'
import { changeOfUser, lockUser } from '../../users/user-record-store.ts'

export interface ApiTokenStore {
  /**
   * Stores a user's new API token and revokes the previous one, in one transaction. Concurrent calls all succeed, and
   * the token of the last call is active. Returns `user_gone`, without a change, if the user was deleted or deactivated
   * in the meantime. A token stored for a deactivated user would become usable when the account is reactivated. Does
   * not check the plan, because a token stays valid when the plan changes.
   * @param now stored as `created_at`
   * @param precondition runs while the row of the user is locked; if it throws, nothing is changed
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

interface Dependencies {
  database: Database
  /**
   * A queue that lets only one call per user wait for the lock of the user's row, because a waiting call occupies a
   * connection.
   */
  perUser: CoalescingQueue<number>
  recordChanges: RecordUserChanges
}

/** Every method throws StorageError when the store fails. */
export function createApiTokenStore({ database, perUser, recordChanges }: Dependencies): ApiTokenStore {
  return {
    // The row of the user is locked first, in a separate statement. A single statement could wait for another replica's
    // commit, but would not see the token of this commit. The unique index would then refuse a second active token. FOR
    // NO KEY UPDATE is the weakest lock that only one transaction can hold. Logins and refreshes (KEY SHARE) do not
    // wait for it. A deletion also locks the user before the tokens, so it cannot deadlock with this transaction.
    replace: (userId, tokenHash, now, precondition) =>
      perUser.run(userId, () =>
        database.transaction(async tx => {
          const user = await lockUser(tx, userId)
          if (user?.is_active !== 1) return 'user_gone'
          await precondition?.(tx)
          await revokeApiToken(tx, userId)
          await tx.query('insert into api_tokens (user_id, token_hash, created_at) values ($1, $2, $3)', [
            userId,
            tokenHash,
            now,
          ])
          await recordChanges(tx, [{ type: 'user.api_key_created', user }])
          return { created_at: now }
        }),
      ),

    revoke: (userId, inTransaction) =>
      perUser.run(userId, () =>
        changeOfUser(database, userId, inTransaction, tx => revokeApiToken(tx, userId)),
      ),
  }
}

/** @returns the number of revoked tokens, which is 0 or 1 */
export function revokeApiToken(queryable: Queryable, userId: number): Promise<number> {
  const sql = 'update api_tokens set revoked = 1 where user_id = $1 and revoked = 0 returning id'
  return countRows(queryable, sql, [userId])
}
