// What sends mails: an SMTP server, or the log.
import type { Sender } from '../../config/formats/mail.ts'
import type { MailText } from '../composing/compose.ts'
import type { MailKind } from '../mail-kind.ts'

export interface OutgoingMail extends MailText {
  readonly kind: MailKind | 'test'
  readonly from: Sender
  /** One mailbox of RFC 5321. */
  readonly to: string
  /** The same at every attempt: receivers can drop a mail that came twice. */
  readonly messageId: string
  readonly date: Date
}

export interface MailSender {
  /**
   * @param signal of the attempt's deadline: cuts the connection
   * @throws SmtpFailure; NoConnectionFree before anything was done
   */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<void>
  close(): void
}

/** All connections were in use for too long. */
export class NoConnectionFree extends Error {
  override readonly name = 'NoConnectionFree'
}
