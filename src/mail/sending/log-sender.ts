// `mail.smtp: log`: prints mails with their codes to the log, for development.
import type { Logger } from 'pino'
import type { MailSender } from './mail-sender.ts'

export function createLogSender(logger: Logger): MailSender {
  return {
    async send({ kind, to, subject, text }) {
      logger.info({ kind, to, subject, text }, 'mail')
    },
    close() {},
  }
}
