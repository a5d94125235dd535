// Explains at which step the SMTP conversation failed, and what to check.
import type { SmtpServer } from '../../config/formats/mail.ts'
import type { OutgoingMail } from '../../mail/sending/mail-sender.ts'
import type { SmtpFailure } from '../../mail/sending/smtp-failure.ts'

export function describeFailure(
  { step, message, replyCode }: SmtpFailure,
  { host, port, tls }: SmtpServer,
  { from, to }: OutgoingMail,
): string {
  const server = `${host}:${port}`
  // The message of a reply already contains the reply code.
  const reply = replyCode === undefined ? message : `the server replied: ${message}`
  switch (step) {
    case 'name':
      return `the name ${host} was not found (${message}). Check its spelling and the DNS of this machine.`
    case 'connect':
      return `no connection to ${server} (${message})${connectHint(message)}`
    case 'greeting':
      return `${server} did not send the greeting of a mail server (${reply}). Check the port: smtps:// is for 465, smtp:// is for 587.`
    case 'tls':
      return tls === 'implicit'
        ? `${server} does not use TLS from the start (${reply}). If it uses STARTTLS, write smtp:// in mail.smtp.`
        : `STARTTLS failed at ${server} (${reply}). Without STARTTLS, the gateway sends no mail. If the server uses TLS from the start, write smtps:// in mail.smtp.`
    case 'certificate':
      return `the certificate of ${server} is not valid for ${host}, or this machine does not trust it (${message}). For a private CA, set NODE_EXTRA_CA_CERTS.`
    case 'login':
      return `${server} rejected the user and password (${reply}). Check them, and percent-encode both in mail.smtp.`
    case 'sender':
      return `${server} rejected the sender ${from.address} (${reply}). Check that the user of mail.smtp may use this sender.`
    case 'recipient':
      return `${server} rejected the recipient ${to} (${reply})`
    case 'text':
      return `${server} rejected the text of the mail (${reply})`
    case 'connection':
      return `${server} ended the connection (${reply})`
    case 'deadline':
      return `${server} did not accept the mail within 30 seconds`
  }
}

function connectHint(code: string): string {
  const hints: Record<string, string> = {
    ECONNREFUSED: 'Nothing listens there, or a firewall rejects the connection.',
    ETIMEDOUT: 'A firewall drops the packets, or the machine is down.',
    EHOSTUNREACH: 'There is no route to that machine.',
    ENETUNREACH: 'There is no route to that network.',
    ECONNRESET: 'The server reset the connection.',
  }
  return hints[code] === undefined ? '' : `. ${hints[code]}`
}
