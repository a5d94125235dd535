// Takes due deliveries and sends them, on every replica at once: each is taken by one of them, for as long as its lease.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import type { DeliveryOutcomes } from '../../observability/metrics/counters.ts'
import type { Send, SendOutcome } from '../sending/send.ts'
import { signDelivery } from '../signature.ts'
import type { WebhookSecrets } from '../webhook-secret.ts'
import type { WebhookStore } from '../webhook-store.ts'
import { createDeliverySlots, type SlotClass, type SlotLimits } from './delivery-slots.ts'
import type { AttemptOutcome, DeliveryStore } from './delivery-store.ts'
import type { LeasedDelivery } from './lease-store.ts'
import { parseRetryAfterMs } from './retry-after.ts'
import { retryDelayMs } from './schedule.ts'

export interface DeliveryWorker {
  /** There is something to deliver: it is looked for now, not at the next look. */
  wake(): void
  /** Takes no more, ends what is under way after `grace` milliseconds, and gives back what was not sent. */
  stop(graceMs: number): Promise<void>
}

export interface SendSettings {
  readonly send: Send
  /** `webhooks.timeout`, milliseconds. */
  readonly timeoutMs: number
}

interface Dependencies {
  deliveries: Pick<DeliveryStore, 'lease' | 'recordAttempt' | 'release'>
  webhooks: Pick<WebhookStore, 'removeRegistration'>
  secrets: WebhookSecrets
  /** How, by the settings of the moment: an attempt keeps those under which it was taken. */
  sendSettings(): SendSettings
  clock: Clock
  /** 0 to 1. */
  random(): number
  /** Where attempts are counted as they end. */
  outcomes: DeliveryOutcomes
  /** Told of a store that failed; what was taken is taken again when its lease has ended. */
  onError(error: unknown): void
}

/** Sockets that wait for an answer cost little; those that are answered at once never need many. */
const slotLimits: SlotLimits = { normal: 32, slow: 128, perReceiver: 4 }

/** Milliseconds between two looks for what is due, and between two that were asked for: what ends together is one look. */
const pollIntervalMs = 1_000
const minPollGapMs = 50

/** Milliseconds without an answer after which a receiver is slow. */
const slowAfterMs = 1_000

/** Milliseconds for which a lease outlasts the attempt: what a dead replica had is sent after that (CONTRACT §5). */
const leaseMarginMs = 15_000

export function createDeliveryWorker(dependencies: Dependencies): DeliveryWorker {
  const { deliveries, webhooks, secrets, clock, onError } = dependencies
  const slots = createDeliverySlots(slotLimits)
  const stopping = new AbortController()
  // One for each that is under way, and none of them stays.
  setMaxListeners(0, stopping.signal)
  const inFlight = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined = setTimeout(poll, pollIntervalMs).unref()
  let currentPoll: Promise<void> | undefined
  let isWoken = false
  /** The last look found some: there may be more as soon as a place is free. */
  let mayHaveMore = false
  let isFailing = false
  let isStopped = false

  function poll(): void {
    isWoken = true
    if (currentPoll !== undefined || isStopped) return
    clearTimeout(timer)
    currentPoll = pollWhileWoken()
  }

  async function pollWhileWoken(): Promise<void> {
    while (isWoken && !isStopped) {
      isWoken = false
      try {
        mayHaveMore = (await leaseDue('normal')) + (await leaseDue('slow')) > 0
        if (mayHaveMore && slots.freeSlots('normal') > 0) isWoken = true
        isFailing = false
      } catch (error) {
        onStoreError(error)
      }
      await sleep(minPollGapMs)
    }
    currentPoll = undefined
    if (!isStopped) timer = setTimeout(poll, pollIntervalMs).unref()
  }

  /** Once: a store that is away fails for every delivery that is under way. */
  function onStoreError(error: unknown): void {
    if (!isFailing) onError(error)
    isFailing = true
  }

  /** @returns how many were taken */
  async function leaseDue(slotClass: SlotClass): Promise<number> {
    const slowReceivers = slots.slowReceivers()
    const limit = slots.freeSlots(slotClass)
    if (isStopped || limit <= 0 || (slotClass === 'slow' && slowReceivers.length === 0)) return 0
    const now = clock.now()
    const { send, timeoutMs } = dependencies.sendSettings()
    const leased = await deliveries.lease({
      limit,
      perReceiver: slots.perReceiver,
      busyReceivers: slots.busyReceivers(),
      slowReceivers,
      slotClass,
      now: new Date(now),
      leaseUntil: new Date(now + timeoutMs + leaseMarginMs),
    })
    for (const delivery of leased) {
      const attempt = deliver(delivery, slotClass, send)
        .catch(onStoreError)
        .finally(() => {
          inFlight.delete(attempt)
          if (mayHaveMore) poll()
        })
      inFlight.add(attempt)
    }
    return leased.length
  }

  async function deliver(leased: LeasedDelivery, slotClass: SlotClass, send: Send): Promise<void> {
    const slot = slots.acquire(leased.receiver, slotClass)
    const slowTimer = setTimeout(() => pollIf(slot.moveToSlow()), slowAfterMs)
    const startedAtMs = performance.now()
    const outcome = await attempt(leased, send)
    clearTimeout(slowTimer)
    pollIf(slot.release(performance.now() - startedAtMs >= slowAfterMs))
    if (outcome.kind === 'failed' && outcome.reason === 'aborted') {
      await deliveries.release(leased, new Date(clock.now()))
      return
    }
    const attemptOutcome = outcomeOf(leased, outcome)
    dependencies.outcomes[typeof attemptOutcome.result === 'object' ? 'retried' : attemptOutcome.result] += 1
    await deliveries.recordAttempt(leased, attemptOutcome, new Date(clock.now()))
    if (outcome.kind === 'answered' && outcome.status === 410) {
      await webhooks.removeRegistration(leased.user_id, leased.registration, new Date(clock.now()))
    }
  }

  /** A look passes over what has no free place, and is told of none that comes free: only of what it took. */
  function pollIf(mayHaveWaiting: boolean): void {
    if (mayHaveWaiting) poll()
  }

  async function attempt(leased: LeasedDelivery, send: Send): Promise<SendOutcome> {
    const { url, body, user_id, secret_before } = leased
    const secret = secrets.unseal(leased.secret, user_id)
    if (secret === undefined) {
      return { kind: 'failed', reason: 'secret', message: 'the secret was sealed under another key_secret' }
    }
    // One that cannot be read takes only its own signature away: receivers are to check by the current one.
    const previousSecret = secret_before === null ? undefined : secrets.unseal(secret_before, user_id)
    const signingSecrets = previousSecret === undefined ? [secret] : [secret, previousSecret]
    const headers = webhookHeaders(leased, signingSecrets, Math.floor(clock.now() / 1000))
    return send({ url, headers, body, signal: stopping.signal })
  }

  function outcomeOf({ attempts }: LeasedDelivery, outcome: SendOutcome): AttemptOutcome {
    const responseStatus = outcome.kind === 'answered' ? outcome.status : null
    const error = outcome.kind === 'failed' ? `${outcome.reason}: ${outcome.message}` : null
    if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
      return { responseStatus, error, result: 'delivered' }
    }
    const now = clock.now()
    const retryAfter = outcome.kind === 'answered' ? outcome.retryAfter : undefined
    const retryAfterMs = retryAfter === undefined ? 0 : parseRetryAfterMs(retryAfter, now)
    const delayMs =
      responseStatus === 410 ? undefined : retryDelayMs(attempts, dependencies.random(), retryAfterMs)
    const result = delayMs === undefined ? 'failed' : { retryAt: new Date(now + delayMs) }
    return { responseStatus, error, result }
  }

  return {
    wake: poll,
    async stop(graceMs) {
      isStopped = true
      clearTimeout(timer)
      const abortTimer = setTimeout(() => stopping.abort(), graceMs)
      // What a look is about to take is under way too.
      await currentPoll
      await Promise.all(inFlight)
      clearTimeout(abortTimer)
    },
  }
}

/** As Standard Webhooks has them. The id is the same for every attempt; each secret makes a signature, in order. */
function webhookHeaders(
  { alert_id, user_id, body }: LeasedDelivery,
  signingSecrets: readonly string[],
  timestampSeconds: number,
) {
  const id = messageId(alert_id, user_id)
  return {
    'content-type': 'application/json',
    'user-agent': 'peage',
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signingSecrets
      .map(secret => signDelivery(secret, id, timestampSeconds, body))
      .join(' '),
  }
}

/** The `webhook-id` of an alert to a user, by which its receiver tells a repetition. */
export function messageId(alertId: string, userId: number): string {
  return `msg_${alertId.replaceAll('-', '')}_${userId}`
}
