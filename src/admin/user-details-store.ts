// Reads all data of one user for operators, but never a hash, a key or a secret.
import type { Database } from '../storage/database.ts'
import type { Plan, User } from '../users/user.ts'
import { userColumns } from '../users/user-record-store.ts'

export interface UserDetails {
  readonly user: User
  readonly subscription: { plan: Plan; created_at: Date; updated_at: Date } | null
  readonly apiToken: { created_at: Date; last_used_at: Date | null } | null
  readonly webhook: { url: string; created_at: Date } | null
}

export interface UserDetailsStore {
  /** Finds an active or inactive user. @throws StorageError */
  find(userId: number): Promise<UserDetails | undefined>
}

interface Row extends User {
  subscribed_plan: Plan | null
  subscribed_at: Date
  subscription_changed_at: Date
  key_created_at: Date | null
  key_used_at: Date | null
  webhook_url: string | null
  webhook_created_at: Date
}

export function createUserDetailsStore(database: Database): UserDetailsStore {
  return {
    async find(userId) {
      const [row] = await database.query<Row>(
        `select ${userColumns}, s.plan as subscribed_plan, s.created_at as subscribed_at,
                s.updated_at as subscription_changed_at, t.created_at as key_created_at,
                t.last_used_at as key_used_at, w.url as webhook_url, w.created_at as webhook_created_at
           from users u
           left join subscriptions s on s.user_id = u.id
           left join api_tokens t on t.user_id = u.id and t.revoked = 0
           left join webhooks w on w.user_id = u.id
          where u.id = $1`,
        [userId],
      )
      return row && toDetails(row)
    },
  }
}

function toDetails({
  subscribed_plan,
  subscribed_at,
  subscription_changed_at,
  key_created_at,
  key_used_at,
  webhook_url,
  webhook_created_at,
  ...user
}: Row): UserDetails {
  return {
    user,
    subscription:
      subscribed_plan === null
        ? null
        : { plan: subscribed_plan, created_at: subscribed_at, updated_at: subscription_changed_at },
    apiToken: key_created_at === null ? null : { created_at: key_created_at, last_used_at: key_used_at },
    webhook: webhook_url === null ? null : { url: webhook_url, created_at: webhook_created_at },
  }
}
