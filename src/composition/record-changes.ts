// What is told of changes of users: one recorder for clients, operators and commands alike.
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema/schema.ts'
import type { RecordUserChanges } from '../users/user-change.ts'
import { createEventRecorder } from '../webhooks/events/record-events.ts'

export interface ChangeRecorder {
  readonly record: RecordUserChanges
  /** Changes from now on are told as this configuration says. */
  configure(config: Config): void
}

export function createChangeRecorder(initial: Config, clock: Clock): ChangeRecorder {
  const events = createEventRecorder(initial.events, clock)
  return { record: events.record, configure: config => events.configure(config.events) }
}
