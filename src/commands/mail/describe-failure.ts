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
  // The message of a reply already contains its code.
  const reply = replyCode === undefined ? message : `the server said: ${message}`
  switch (step) {
    case 'name':
      return `the name ${host} was not found (${message}): is it spelt right, and does this machine's DNS know it?`
    case 'connect':
      return `no connection to ${server}: ${connectReason(message)}`
    case 'greeting':
      return `${server} was reached, but did not greet as a mail server (${reply}): is it the right port? smtps:// is for 465, smtp:// for 587`
    case 'tls':
      return tls === 'implicit'
        ? `${server} does not speak TLS from the start (${reply}): smtp:// is for servers that begin it with STARTTLS`
        : `${server} does not begin TLS with STARTTLS (${reply}), and nothing is sent without it: smtps:// is for servers that speak TLS from the start`
    case 'certificate':
      return `the certificate of ${server} is not one for ${host} by an authority that this machine trusts (${message}): for one of your own set NODE_EXTRA_CA_CERTS`
    case 'login':
      return `${server} refused user and password (${reply}): are they right, and percent-encoded in mail.smtp?`
    case 'sender':
      return `${server} refused the sender ${from.address} (${reply}): may this user send by it?`
    case 'recipient':
      return `${server} refused the recipient ${to} (${reply})`
    case 'text':
      return `${server} refused the text (${reply})`
    case 'connection':
      return `${server} ended the conversation (${reply})`
    case 'deadline':
      return `${server} took too long: no answer within 30 seconds`
  }
}

function connectReason(code: string): string {
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'refused: nothing listens there, or a firewall says no',
    ETIMEDOUT: 'no answer: a firewall drops what is sent there, or the machine is down',
    EHOSTUNREACH: 'there is no way to that machine',
    ENETUNREACH: 'there is no way to that network',
    ECONNRESET: 'it was reset',
  }
  return reasons[code] === undefined ? code : `${reasons[code]} (${code})`
}
