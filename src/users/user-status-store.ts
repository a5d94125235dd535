// Reads the plan and the email verification of many users in one query. With this status, the gateway checks whether
// open streams are still allowed.
import type { Database } from '../storage/database.ts'
import type { Plan } from './user.ts'

export interface UserStatus {
  readonly plan: Plan
  readonly isVerified: boolean
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
      }>(
        `select u.id, u.plan, u.email_verified_at is not null as is_verified
           from users u where u.id = any($1::bigint[]) and u.is_active = 1`,
        [userIds],
      )
      return new Map(rows.map(row => [row.id, { plan: row.plan, isVerified: row.is_verified }]))
    },
  }
}
