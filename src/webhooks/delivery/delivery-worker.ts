// Leases due deliveries and sends them. Every replica runs one: a lease gives each delivery to one replica at a time.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import type { DeliveryOutcomes } from '../../observability/metrics/counters.ts'
import type { Send, SendOutcome } from '../sending/send.ts'
import { signDelivery, type WebhookSecrets } from '../webhook-secret.ts'
import type { WebhookStore } from '../webhook-store.ts'
import { createDeliverySlots, type SlotClass, type SlotLimits } from './delivery-slots.ts'
import type { AttemptOutcome, DeliveryStore } from './delivery-store.ts'
import type { LeasedDelivery } from './lease-store.ts'
import { parseRetryAfterMs, retryDelayMs } from './retry-schedule.ts'

export interface DeliveryWorker {
  /** A delivery was queued: polls now instead of at the next interval. */
  wake(): void
  /** Leases no more, aborts running attempts after `graceMs`, and returns what was not sent. */
  stop(graceMs: number): Promise<void>
}

export interface SendSettings {
  readonly send: Send
  /** `webhooks.timeout`. */
  readonly timeoutMs: number
}

interface Dependencies {
  deliveries: Pick<DeliveryStore, 'lease' | 'recordAttempt' | 'release'>
  webhooks: Pick<WebhookStore, 'removeRegistration'>
  secrets: WebhookSecrets
  /** The current settings; an attempt keeps those it was leased under. */
  sendSettings(): SendSettings
  clock: Clock
  /** From 0 to 1. */
  random(): number
  /** Counts attempts as they end. */
  outcomes: DeliveryOutcomes
  /** Called when the store fails; leased deliveries are leased again after their lease expires. */
  onError(error: unknown): void
}

/** A socket that waits for a response costs little, and receivers that respond at once never need many. */
const slotLimits: SlotLimits = { normal: 32, slow: 128, perReceiver: 4 }

/** The poll interval, and the minimum gap even when woken: deliveries that end together cause one poll. */
const pollIntervalMs = 1_000
const minPollGapMs = 50

/** A receiver that has not responded by then is slow. */
const slowAfterMs = 1_000

/** How long a lease outlasts the attempt; then another replica sends what a dead one had leased (CONTRACT §5). */
const leaseMarginMs = 15_000

export function createDeliveryWorker(dependencies: Dependencies): DeliveryWorker {
  const { deliveries, webhooks, secrets, clock, onError } = dependencies
  const slots = createDeliverySlots(slotLimits)
  const stopping = new AbortController()
  // Every running delivery adds a listener and removes it, so any number is fine.
  setMaxListeners(0, stopping.signal)
  const inFlight = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined = setTimeout(poll, pollIntervalMs).unref()
  let currentPoll: Promise<void> | undefined
  let isWoken = false
  /** The last poll leased some: more may be due as soon as a slot is free. */
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

  /** Reports once: a store that is down fails every running delivery. */
  function onStoreError(error: unknown): void {
    if (!isFailing) onError(error)
    isFailing = true
  }

  /** @returns how many were leased */
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

  /** A poll skips deliveries without a free slot, and `mayHaveMore` ignores these: a freed slot polls again. */
  function pollIf(mayHaveWaiting: boolean): void {
    if (mayHaveWaiting) poll()
  }

  async function attempt(leased: LeasedDelivery, send: Send): Promise<SendOutcome> {
    const { url, body, user_id, secret_before } = leased
    const secret = secrets.unseal(leased.secret, user_id)
    if (secret === undefined) {
      return { kind: 'failed', reason: 'secret', message: 'the secret was sealed under another key_secret' }
    }
    // An unreadable previous secret costs only its own signature: receivers should verify with the current secret.
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
      // A running poll may still lease deliveries.
      await currentPoll
      await Promise.all(inFlight)
      clearTimeout(abortTimer)
    },
  }
}

/** The headers of Standard Webhooks. The id is the same for every attempt; each secret adds a signature, in order. */
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

/** The `webhook-id` of an alert to a user, by which its receiver detects a repeated delivery. */
export function messageId(alertId: string, userId: number): string {
  return `msg_${alertId.replaceAll('-', '')}_${userId}`
}
