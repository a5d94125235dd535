// Records changes to users as events for services and as notices to the users. Clients, operators and commands can make
// these changes.
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import type { MailQueue } from '../mail/mail-queue.ts'
import { createNoticeRecorder } from '../mail/notices.ts'
import type { RecordUserChanges } from '../users/user-change.ts'
import { createEventRecorder } from '../webhooks/events/record-events.ts'

/** @param config called at each change; returns the configuration at that time */
export function createChangeRecorder(
  config: () => Pick<Config, 'events' | 'mail'>,
  clock: Clock,
  mails: Pick<MailQueue, 'add'>,
): RecordUserChanges {
  const recordEvents = createEventRecorder(() => config().events, clock)
  // This function does not wake the mail worker. The worker finds the notices at its next poll.
  const recordNotices = createNoticeRecorder(() => config().mail, mails)
  return async (tx, changes) => {
    await recordEvents(tx, changes)
    await recordNotices(tx, changes)
  }
}
