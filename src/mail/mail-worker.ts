// Sends due mails. Every replica has one worker. A lease gives each mail to one replica at a time.
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { Sender } from '../config/formats/mail.ts'
import { parseDuration } from '../config/formats/units.ts'
import type { MailOutcomes } from '../observability/metrics/counters.ts'
import type { AttemptOutcome } from '../outbox/attempt-store.ts'
import { type OutboxWorker, startOutboxWorker } from '../outbox/outbox-worker.ts'
import { retryDelayMs } from '../outbox/retry-delay.ts'
import { type CodeAndToken, type ComposeSettings, compose } from './composing/compose.ts'
import type { LeasedMail, MailStore } from './mail-store.ts'
import { type MailSender, NoConnectionFree } from './sending/mail-sender.ts'
import { SmtpFailure } from './sending/smtp-failure.ts'

export interface SendSettings extends ComposeSettings {
  readonly from: Sender
  readonly sender: MailSender
}

/**
 * Reads the code of a mail.
 * @returns undefined if the code with this ID is no longer valid
 * @throws StorageError
 */
export type ReadMailedCode = (
  id: string,
  now: Date,
) => Promise<(CodeAndToken & { readonly expiresAt: Date }) | undefined>

interface Dependencies {
  mails: Pick<MailStore, 'lease' | 'recordAttempt' | 'release'>
  readCode: ReadMailedCode
  /**
   * Returns the current settings. While this function returns undefined, mails wait. An attempt keeps the settings with
   * which it began.
   */
  sendSettings(): SendSettings | undefined
  clock: Clock
  /** Returns a random number from 0 to 1. */
  random(): number
  outcomes: Pick<MailOutcomes, 'count'>
  onStoreError(error: unknown): void
  onFailure(mail: LeasedMail, failure: SmtpFailure): void
}

/**
 * The maximum number of mails that this worker leases at the same time. It is higher than the number of SMTP
 * connections. So when a connection becomes free, a leased mail already waits for it.
 */
const maxLeased = 64

/**
 * The time limit of an attempt. The lease of a mail lasts longer. If the process crashes during an attempt, a worker
 * retries the mail within 90 s: after the lease has expired, at the next poll.
 */
export const attemptMs = 60_000
const leaseMs = 75_000

/**
 * The delays between attempts: the first delay follows the first attempt, and so on. The `expires_at` of the mail ends
 * the retries after one day at the latest.
 */
const retryDelaysMs = ['30s', '2m', '10m', '1h', ...Array<string>(6).fill('4h')].map(parseDuration)

/**
 * The delays between attempts to store an outcome. Their sum is about 14 s. After a fast attempt to send a mail, the
 * lease lasts much longer than this. After a slow attempt, the lease may expire before the last retry.
 */
const recordRetriesMs = [100, 1_000, 3_000, 10_000]

export function startMailWorker(dependencies: Dependencies): OutboxWorker {
  const { mails, readCode, sendSettings, clock, outcomes } = dependencies

  async function lease(running: number): Promise<LeasedMail[]> {
    const limit = maxLeased - running
    if (sendSettings() === undefined || limit <= 0) return []
    const now = clock.now()
    return mails.lease({ limit, now: new Date(now), leaseUntil: new Date(now + leaseMs) })
  }

  async function attempt(mail: LeasedMail, stopping: AbortSignal): Promise<void> {
    const settings = sendSettings()
    const outcome = settings === undefined ? 'unsent' : await send(mail, settings, stopping)
    const now = new Date(clock.now())
    if (outcome === 'unsent') return mails.release(mail, now)
    const { result } = outcome
    outcomes.count(mail.kind, typeof result === 'object' ? 'retried' : result)
    await record(mail, outcome, now, stopping)
  }

  /** Stores an outcome. Retries for some seconds, because a mail whose outcome is not stored is sent again. */
  async function record(
    mail: LeasedMail,
    outcome: AttemptOutcome<'sent'>,
    now: Date,
    stopping: AbortSignal,
  ): Promise<void> {
    for (const delayMs of recordRetriesMs) {
      try {
        await mails.recordAttempt(mail, outcome, now)
        return
      } catch (error) {
        if (stopping.aborted) throw error
        dependencies.onStoreError(error)
        await sleep(delayMs)
      }
    }
    await mails.recordAttempt(mail, outcome, now)
  }

  /** @returns `unsent` if nothing was attempted, or if `stopping` aborted the attempt; the mail then stays due */
  async function send(
    mail: LeasedMail,
    settings: SendSettings,
    stopping: AbortSignal,
  ): Promise<AttemptOutcome<'sent'> | 'unsent'> {
    const now = clock.now()
    const code = mail.code_id === null ? undefined : await readCode(mail.code_id, new Date(now))
    const isVoid = mail.code_id !== null && code === undefined
    if (isVoid || mail.expires_at.getTime() <= now) {
      return { responseStatus: null, error: 'the mail has expired, or its code is invalid', result: 'failed' }
    }
    // The signal may have aborted while the code was read. A listener that is added after the abort does not run, so
    // the signal is checked here.
    if (stopping.aborted) return 'unsent'
    const { from, sender } = settings
    const { kind, address } = mail
    const mailedCode = code && { ...code, goodForMs: code.expiresAt.getTime() - now }
    const outgoing = {
      ...compose({ kind, address, code: mailedCode }, settings),
      kind,
      from,
      to: address,
      messageId: messageIdOf(mail.id, mail.created_at, from),
      date: new Date(now),
    }
    try {
      await withDeadline(stopping, signal => sender.send(outgoing, signal))
      return { responseStatus: 250, error: null, result: 'sent' }
    } catch (error) {
      if (stopping.aborted || error instanceof NoConnectionFree) return 'unsent'
      if (!(error instanceof SmtpFailure)) throw error
      dependencies.onFailure(mail, error)
      return failed(mail, error, code)
    }
  }

  function failed(
    { attempts, expires_at: expiresAt }: LeasedMail,
    failure: SmtpFailure,
    code: CodeAndToken | undefined,
  ): AttemptOutcome<'sent'> {
    const delayMs = retryDelayMs(retryDelaysMs, attempts, dependencies.random())
    const retryAt = delayMs === undefined ? undefined : new Date(clock.now() + delayMs)
    const isTriedAgain = !failure.isPermanent && retryAt !== undefined && retryAt < expiresAt
    return {
      responseStatus: failure.replyCode ?? null,
      error: withoutCode(`${failure.step}: ${failure.message}`, code),
      result: isTriedAgain ? { retryAt } : 'failed',
    }
  }

  return startOutboxWorker({
    lease: [lease],
    hasRoom: running => running < maxLeased,
    attempt,
    onError: dependencies.onStoreError,
  })
}

/** Returns a Message-ID that is the same at every attempt, and does not reveal how many mails were sent. */
function messageIdOf(id: number, createdAt: Date, from: Sender): string {
  const digest = createHash('sha256').update(`${id} ${createdAt.getTime()} ${from.address}`).digest('hex')
  return `<${digest.slice(0, 32)}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`
}

/** Runs `work` with a signal that aborts after `attemptMs`, or when the process stops. */
async function withDeadline<T>(stopping: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController()
  const abort = () => deadline.abort()
  const timer = setTimeout(abort, attemptMs)
  stopping.addEventListener('abort', abort, { once: true })
  try {
    return await work(deadline.signal)
  } finally {
    clearTimeout(timer)
    stopping.removeEventListener('abort', abort)
  }
}

/** Removes the code and the token from the text of an error, because a server may quote the text that it rejects. */
function withoutCode(error: string, code: CodeAndToken | undefined): string {
  if (code === undefined) return error
  return error.replaceAll(code.token, '…').replaceAll(code.code, '…')
}
