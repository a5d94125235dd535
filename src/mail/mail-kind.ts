// The kinds of mails: those that carry a code, and notices.

/** Mails that carry a code, by the code's purpose. */
const codeKinds = ['reset', 'verify', 'email'] as const

/** Mails that only tell something; `mail.notices: false` sends none. */
const noticeKinds = [
  'password_changed',
  'email_changed',
  'account_deleted',
  /** To the present address: a change to another one was asked for. */
  'email_change_requested',
  /** To the owner of an address that somebody else wanted for their account. */
  'email_taken',
] as const

export const mailKinds = [...codeKinds, ...noticeKinds] as const

export type CodeKind = (typeof codeKinds)[number]
export type NoticeKind = (typeof noticeKinds)[number]
export type MailKind = (typeof mailKinds)[number]

export function isNoticeKind(kind: MailKind): kind is NoticeKind {
  return noticeKinds.some(noticeKind => noticeKind === kind)
}
