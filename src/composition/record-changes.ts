// What is told of changes of users, to services by events and to users by mail: one recorder for clients, operators and
// commands alike.
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import { createMailQueue } from '../mail/mail-queue.ts'
import { createNoticeRecorder } from '../mail/notices.ts'
import type { RecordUserChanges } from '../users/user-change.ts'
import { createEventRecorder } from '../webhooks/events/record-events.ts'

export interface ChangeRecorder {
  readonly record: RecordUserChanges
  /** Changes from now on are told as this configuration says. */
  configure(config: Config): void
}

export function createChangeRecorder(initial: Config, clock: Clock): ChangeRecorder {
  const events = createEventRecorder(initial.events, clock)
  // Committed by whoever makes the change: the sender finds them with its next poll.
  const notices = createNoticeRecorder(initial.mail, createMailQueue(clock))
  return {
    async record(tx, changes) {
      await events.record(tx, changes)
      await notices.record(tx, changes)
    },
    configure(config) {
      events.configure(config.events)
      notices.configure(config.mail)
    },
  }
}
