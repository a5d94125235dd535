// The bytes of a mail: headers and MIME parts, made of objects, so that no text of ours or a user's is parsed as a header.
import MailComposer from 'nodemailer/lib/mail-composer'
import type { OutgoingMail } from './mail-sender.ts'

export function buildMessage({
  from,
  to,
  subject,
  text,
  html,
  messageId,
  date,
}: OutgoingMail): Promise<Buffer> {
  const composer = new MailComposer({
    from: { name: from.name, address: from.address },
    to: { name: '', address: to },
    subject,
    text,
    ...(html === undefined ? {} : { html }),
    messageId,
    date,
    // RFC 3834: nobody's holiday notice answers it.
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}
