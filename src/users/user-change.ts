// What happens to user records, as those who are to be told of it get it: services by events, users by notices.
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
      readonly user: User
    }
  | { readonly type: 'user.email_changed'; readonly user: User; readonly previousEmail: string }

/** Stores, in the transaction of the change, what is to be told of it: events for services, notices to the user. */
export type RecordUserChanges = (tx: Queryable, changes: readonly UserChange[]) => Promise<void>

/** What truly changed from one record of a user to the next, the password aside: a plan set to what it was is no change. */
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
