// Defines the interface for sending mails through an SMTP server or to the log.
import type { Sender } from '../../config/formats/mail.ts'
import type { MailText } from '../composing/compose.ts'
import type { MailKind } from '../mail-kind.ts'

export interface OutgoingMail extends MailText {
  readonly kind: MailKind | 'test'
  readonly from: Sender
  /** One mailbox, as defined in RFC 5321. */
  readonly to: string
  /** The Message-ID. It is the same at every attempt, so that receivers can drop a duplicate. */
  readonly messageId: string
  readonly date: Date
}

export interface MailSender {
  /**
   * @param signal the deadline of the attempt; when it aborts, the connection is closed
   * @throws SmtpFailure if the attempt fails
   * @throws NoConnectionFree if every connection was busy for too long; nothing was sent
   */
  send(mail: OutgoingMail, signal: AbortSignal): Promise<void>
  close(): void
}

/** The error if every connection was busy for too long. */
export class NoConnectionFree extends Error {
  override readonly name = 'NoConnectionFree'
}
