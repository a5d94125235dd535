// Logs mails that could not be sent: the first of a step at once, then at most one line a minute with a count.
import type { Logger } from 'pino'
import type { Clock } from '../../clock.ts'
import { createLogThrottle } from '../../observability/log-throttle.ts'
import type { SmtpFailure, SmtpStep } from './smtp-failure.ts'

/** Before the conversation is about a mail; a later reply may quote the mail. */
const stepsBeforeMail: ReadonlySet<SmtpStep> = new Set([
  'name',
  'connect',
  'greeting',
  'tls',
  'certificate',
  'login',
])

export function createFailedMailLog({ logger, clock }: { logger: Logger; clock: Clock }) {
  const throttle = createLogThrottle(clock)
  return ({ id, kind }: { id: number; kind: string }, { step, replyCode, message }: SmtpFailure): void => {
    const failures = throttle(step)
    if (failures === undefined) return
    const fields = {
      mail: id,
      kind,
      step,
      ...(replyCode === undefined ? {} : { reply_code: replyCode }),
      ...(stepsBeforeMail.has(step) ? { reason: message } : {}),
      failures,
    }
    logger.warn(fields, 'mail not sent')
  }
}
