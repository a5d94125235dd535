// Stores events about changes of users, in the transaction of the changes.
import type { Clock } from '../../clock.ts'
import type { EventsConfig } from '../../config/sections/schema.ts'
import type { RecordUserChanges, UserChange } from '../../users/user-change.ts'
import { storeEvents } from './event-store.ts'

/** @param settings returns the current settings; undefined if no service receives events */
export function createEventRecorder(
  settings: () => Pick<EventsConfig, 'types'> | undefined,
  clock: Clock,
): RecordUserChanges {
  return async (tx, changes) => {
    const types: readonly string[] = settings()?.types ?? []
    const told = changes.filter(({ type }) => types.includes(type))
    if (told.length === 0) return
    const now = new Date(clock.now())
    await storeEvents(
      tx,
      told.map(change => ({
        userId: change.user.id,
        type: change.type,
        body: JSON.stringify({
          type: change.type,
          timestamp: now.toISOString(),
          data: dataOf(change),
        }),
      })),
      now,
    )
  }
}

function dataOf(change: UserChange): object {
  const { id, email, plan, is_active } = change.user
  return {
    user_id: id,
    email,
    plan,
    is_active,
    ...(change.type === 'user.email_changed' && { previous_email: change.previousEmail }),
  }
}
