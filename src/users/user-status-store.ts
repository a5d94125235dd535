// Reads the plan, verification and API token of many users in one query, to check open streams again.
import type { Database } from '../storage/database.ts'
import type { Plan } from './user.ts'

export interface UserStatus {
  readonly plan: Plan
  readonly isVerified: boolean
  /** The id of the user's active API token. A user has at most one. */
  readonly apiTokenId: number | null
}

export interface UserStatusStore {
  /** Inactive and deleted users are missing from the result. @throws StorageError */
  read(userIds: readonly number[]): Promise<Map<number, UserStatus>>
}

export function createUserStatusStore(database: Database): UserStatusStore {
  return {
    async read(userIds) {
      const rows = await database.query<{
        id: number
        plan: Plan
        is_verified: boolean
        key_id: number | null
      }>(
        `select u.id, u.plan, u.email_verified_at is not null as is_verified, t.id as key_id
           from users u left join api_tokens t on t.user_id = u.id and t.revoked = 0
          where u.id = any($1::bigint[]) and u.is_active = 1`,
        [userIds],
      )
      return new Map(
        rows.map(row => [row.id, { plan: row.plan, isVerified: row.is_verified, apiTokenId: row.key_id }]),
      )
    },
  }
}
