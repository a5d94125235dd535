// Creates the parts that send mails: settings, worker, log and pruner. Only one process per host runs them. A reload of
// the configuration replaces the settings.
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { isSameValue } from '../config/same-value.ts'
import type { MailConfig } from '../config/sections/schema.ts'
import { createLogThrottle } from '../observability/log-throttle.ts'
import type { MailOutcomes } from '../observability/metrics/counters.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { Storage } from '../storage/open.ts'
import { createPruner } from '../storage/pruner.ts'
import { noTemplates, readTemplates, type Templates } from './composing/templates.ts'
import { mailKinds } from './mail-kind.ts'
import type { MailQueue } from './mail-queue.ts'
import { createMailStore, type LeasedMail, type MailStore } from './mail-store.ts'
import { type ReadMailedCode, type SendSettings, startMailWorker } from './mail-worker.ts'
import { openMailSender } from './sending/open-sender.ts'
import type { SmtpFailure, SmtpStep } from './sending/smtp-failure.ts'

export interface MailService {
  readonly mails: Pick<MailStore, 'list'>
  /** @param graceMs how long running attempts may continue */
  stop(graceMs: number): Promise<void>
}

interface Dependencies {
  storage: Pick<Storage, 'database'>
  readCode: ReadMailedCode
  mailQueue: Pick<MailQueue, 'onWake'>
  clock: Clock
  logger: Logger
  failureLog: FailureLog
}

/** A mail is deleted from the log this long after it was created. */
const retentionMs = 30 * 24 * 60 * 60_000

/** @param settings returns the current settings; while it returns undefined, no mail is sent and due mails wait */
export function createMailService(
  settings: () => MailConfig | undefined,
  { storage, readCode, mailQueue, clock, logger, failureLog }: Dependencies,
  outcomes: MailOutcomes,
): MailService {
  const mails = createMailStore(storage.database)
  let current: MailConfig | undefined
  let made: SendSettings | undefined

  function sendSettings(): SendSettings | undefined {
    const next = settings()
    if (next === current) return made
    const isSameServer = isSameValue(current?.smtp, next?.smtp)
    if (!isSameServer) made?.sender.close()
    const sender = isSameServer ? made?.sender : undefined
    made = next && {
      ...next,
      templates: templatesOf(next, logger),
      sender: sender ?? openMailSender(next.smtp, logger),
    }
    if (next !== undefined) outcomes.expose(mailKinds)
    current = next
    return made
  }

  sendSettings()
  const worker = startMailWorker({
    mails,
    readCode,
    sendSettings,
    clock,
    random: Math.random,
    outcomes,
    onStoreError: error => failureLog('mail sending paused because of a database error', error),
    onFailure: createFailedMailLog(logger, clock),
  })
  const unwatch = mailQueue.onWake(worker.wake)
  const pruner = createPruner({
    pruneBatch: (now, limit) => mails.prune(new Date(now.getTime() - retentionMs), limit),
    clock,
    onError: error => failureLog('mail log not pruned', error),
  })
  return {
    mails,
    async stop(graceMs) {
      unwatch()
      pruner.stop()
      await worker.stop(graceMs)
      made?.sender.close()
    },
  }
}

/**
 * Reads the templates. If a file has become unreadable since the configuration was checked, all mails use the built-in
 * texts. Mails with codes must still be sent.
 */
function templatesOf({ templates: folder }: MailConfig, logger: Logger): Templates {
  if (folder === undefined) return noTemplates
  try {
    return readTemplates(folder)
  } catch (error) {
    logger.error({ err: error }, 'mail templates cannot be read; using the built-in texts')
    return noTemplates
  }
}

/**
 * The steps before the gateway sends a mail's data. If one of these steps fails, the reason is logged. In later steps,
 * a reply of the server may quote the mail, so the reason is not logged.
 */
const stepsBeforeMail: ReadonlySet<SmtpStep> = new Set([
  'name',
  'connect',
  'greeting',
  'tls',
  'certificate',
  'login',
])

/** Logs the first failure of a step immediately, then at most one line per minute with a count. */
function createFailedMailLog(logger: Logger, clock: Clock) {
  const throttle = createLogThrottle(clock)
  return ({ id, kind }: LeasedMail, { step, replyCode, message }: SmtpFailure): void => {
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
