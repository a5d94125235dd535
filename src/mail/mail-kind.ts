// Defines the kinds of mails: mails with a code, and notices.

/** The kinds of mails with a code. Each kind is named after the purpose of its code. */
const codeKinds = ['reset', 'verify', 'email'] as const

/** The kinds of notices, which only inform the user. `mail.notices: false` disables notices. */
const noticeKinds = [
  'password_changed',
  'email_changed',
  'account_deleted',
  'api_key_created',
  'identity_linked',
  'identity_removed',
  /** Sent to the current address of a user when a change to another address is requested. */
  'email_change_requested',
  /** Sent to the owner of an email address when another user requests this address. */
  'email_taken',
] as const

export const mailKinds = [...codeKinds, ...noticeKinds] as const

export type CodeKind = (typeof codeKinds)[number]
export type NoticeKind = (typeof noticeKinds)[number]
export type MailKind = (typeof mailKinds)[number]

export function isNoticeKind(kind: MailKind): kind is NoticeKind {
  return noticeKinds.some(noticeKind => noticeKind === kind)
}
