// Defines the changes to user records that cause events for services and notices to users.
import type { Queryable } from '../storage/database.ts'
import type { User } from './user.ts'

export type UserChange =
  | {
      readonly type:
        | 'user.created'
        | 'user.email_verified'
        | 'user.plan_changed'
        | 'user.deactivated'
        | 'user.activated'
        | 'user.deleted'
        | 'user.password_changed'
        | 'user.api_key_created'
        | 'user.identity_linked'
        | 'user.identity_removed'
      readonly user: User
    }
  | { readonly type: 'user.email_changed'; readonly user: User; readonly previousEmail: string }

/** Stores the events and notices that the changes cause, in the same transaction as the changes. */
export type RecordUserChanges = (tx: Queryable, changes: readonly UserChange[]) => Promise<void>

/**
 * Returns the changes from the record `before` to the record `user`. A record does not contain the password, so a
 * change of the password is not found.
 */
export function changesBetween(before: User, user: User): UserChange[] {
  const changes: UserChange[] = []
  if (before.email !== user.email)
    changes.push({ type: 'user.email_changed', user, previousEmail: before.email })
  if (before.email_verified_at === null && user.email_verified_at !== null)
    changes.push({ type: 'user.email_verified', user })
  if (before.plan !== user.plan) changes.push({ type: 'user.plan_changed', user })
  if (before.is_active !== user.is_active)
    changes.push({ type: user.is_active === 1 ? 'user.activated' : 'user.deactivated', user })
  return changes
}
