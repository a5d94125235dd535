// Informs users by mail of changes to their account.
import type { MailConfig } from '../config/sections/schema.ts'
import type { Queryable } from '../storage/database.ts'
import type { RecordUserChanges, UserChange } from '../users/user-change.ts'
import type { NoticeKind } from './mail-kind.ts'
import type { MailQueue } from './mail-queue.ts'

/**
 * Stores the notices about a change in the same transaction as the change. Notices do not count against
 * `mail.rate_limits`, because a limit could suppress a notice.
 * @param settings returns the current settings; undefined if no mails are sent
 */
export function createNoticeRecorder(
  settings: () => Pick<MailConfig, 'notices'> | undefined,
  mails: Pick<MailQueue, 'add'>,
): RecordUserChanges {
  return async (tx: Queryable, changes: readonly UserChange[]) => {
    if (settings()?.notices !== true) return
    for (const change of changes) {
      const notice = noticeOf(change)
      // An inactive user receives no notices, because the gateway treats an inactive account as if it did not exist.
      if (notice === undefined || change.user.is_active === 0) continue
      await mails.add(tx, { ...notice, userId: change.user.id })
    }
  }
}

function noticeOf(change: UserChange): { kind: NoticeKind; address: string } | undefined {
  switch (change.type) {
    case 'user.password_changed':
      return { kind: 'password_changed', address: change.user.email }
    // Sent to the previous address. If an attacker changed the address, the owner can only read mails to the previous
    // address.
    case 'user.email_changed':
      return { kind: 'email_changed', address: change.previousEmail }
    case 'user.api_key_created':
      return { kind: 'api_key_created', address: change.user.email }
    case 'user.identity_linked':
      return { kind: 'identity_linked', address: change.user.email }
    case 'user.identity_removed':
      return { kind: 'identity_removed', address: change.user.email }
    case 'user.deleted':
      return { kind: 'account_deleted', address: change.user.email }
    default:
      return undefined
  }
}
