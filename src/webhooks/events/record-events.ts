// Stores what a service is to be told of users, in the transaction of the change itself (CONTRACT §12).
import type { Clock } from '../../clock.ts'
import type { EventsConfig } from '../../config/sections/schema.ts'
import type { RecordUserChanges, UserChange } from '../../users/user-change.ts'
import { storeEvents } from './event-store.ts'

export interface EventRecorder {
  readonly record: RecordUserChanges
  /** Changes from now on are recorded by these settings. */
  configure(settings: EventsConfig | undefined): void
}

/** @param initial undefined where no service is told */
export function createEventRecorder(initial: EventsConfig | undefined, clock: Clock): EventRecorder {
  let wanted = typesOf(initial)
  return {
    configure(settings) {
      wanted = typesOf(settings)
    },
    async record(tx, changes) {
      const recorded = changes.filter(({ type }) => wanted.has(type))
      if (recorded.length === 0) return
      const now = new Date(clock.now())
      await storeEvents(
        tx,
        recorded.map(change => ({
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
    },
  }
}

function typesOf(settings: EventsConfig | undefined): ReadonlySet<string> {
  return new Set<string>(settings?.types)
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
