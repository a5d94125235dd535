// Logs mails that could not be sent: the first of a step at once, then at most one line a minute with a count.
import type { Logger } from 'pino'
import type { Clock } from '../../clock.ts'
import type { SmtpFailure, SmtpStep } from './smtp-failure.ts'

const intervalMs = 60_000

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
  const lines = new Map<SmtpStep, { atMs: number; unwritten: number }>()
  return ({ id, kind }: { id: number; kind: string }, { step, replyCode, message }: SmtpFailure): void => {
    const line = lines.get(step)
    const nowMs = clock.now()
    if (line !== undefined && nowMs - line.atMs < intervalMs) {
      line.unwritten += 1
      return
    }
    lines.set(step, { atMs: nowMs, unwritten: 0 })
    const fields = {
      mail: id,
      kind,
      step,
      ...(replyCode === undefined ? {} : { reply_code: replyCode }),
      ...(stepsBeforeMail.has(step) ? { reason: message } : {}),
      failures: 1 + (line?.unwritten ?? 0),
    }
    logger.warn(fields, 'mail not sent')
  }
}
