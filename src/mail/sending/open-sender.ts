// Opens the mail sender. The SMTP library is loaded with the first mail, so a gateway without mails never loads it.
import type { Logger } from 'pino'
import type { SmtpServer } from '../../config/formats/mail.ts'
import type { MailSender } from './mail-sender.ts'

/**
 * The maximum time that a mail waits for a free connection. After this time, the mail returns to the queue, long before
 * its lease expires.
 */
const maxWaitMs = 20_000

export function openMailSender(smtp: SmtpServer | 'log', logger: Logger): MailSender {
  if (smtp === 'log') return createLogSender(logger)
  let opened: Promise<MailSender> | undefined
  return {
    async send(mail, signal) {
      opened ??= openSmtpSender(smtp)
      await (await opened).send(mail, signal)
    },
    close: () => opened?.then(sender => sender.close()),
  }
}

async function openSmtpSender(smtp: SmtpServer): Promise<MailSender> {
  const { createSmtpSender } = await import('./smtp-sender.ts')
  return createSmtpSender(smtp, maxWaitMs)
}

/** `mail.smtp: log` prints mails with their codes to the log, for development. */
function createLogSender(logger: Logger): MailSender {
  return {
    async send({ kind, to, subject, text }) {
      logger.info({ kind, to, subject, text }, 'mail')
    },
    close() {},
  }
}
