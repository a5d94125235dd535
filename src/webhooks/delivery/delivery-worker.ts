// Sends due deliveries, with limits per receiver, and evaluates the responses.
import type { Clock } from '../../clock.ts'
import type { DeliveryOutcomes } from '../../observability/metrics/counters.ts'
import { type OutboxWorker, startOutboxWorker } from '../../outbox/outbox-worker.ts'
import { outcomeOf } from '../sending/outcome.ts'
import type { Send, SendOutcome } from '../sending/send.ts'
import { type WebhookSecrets, webhookHeaders } from '../webhook-secret.ts'
import { createDeliverySlots, type SlotClass, type SlotLimits } from './delivery-slots.ts'
import type { DeliveryStore } from './delivery-store.ts'
import type { LeasedDelivery } from './lease-store.ts'

export interface SendSettings {
  readonly send: Send
  /** `webhooks.timeout`. */
  readonly timeoutMs: number
}

interface Dependencies {
  deliveries: Pick<DeliveryStore, 'lease' | 'recordAttempt' | 'recordLast' | 'release'>
  secrets: WebhookSecrets
  /** Returns the current settings. Each attempt uses the settings at the time of its lease. */
  sendSettings(): SendSettings
  clock: Clock
  /** Returns a random number from 0 to 1. */
  random(): number
  outcomes: DeliveryOutcomes
  onError(error: unknown): void
}

/**
 * The limits for concurrent deliveries. The limit for slow receivers is high, because a socket that waits for a
 * response costs little. The normal limit is low, because receivers that respond immediately never need many slots.
 */
const slotLimits: SlotLimits = { normal: 32, slow: 128, perReceiver: 4 }

/** A receiver that has not responded after this time is slow. */
const slowAfterMs = 1_000

/**
 * The time by which a lease is longer than the time limit of the attempt. If a replica dies, another replica sends the
 * delivery when the lease has expired.
 */
const leaseMarginMs = 15_000

/** A leased delivery, with the settings at the time of the lease. */
interface Leased {
  readonly delivery: LeasedDelivery
  readonly slotClass: SlotClass
  readonly send: Send
}

export function createDeliveryWorker(dependencies: Dependencies): OutboxWorker {
  const { deliveries, secrets, clock, onError } = dependencies
  const slots = createDeliverySlots(slotLimits)
  const worker = startOutboxWorker({
    lease: [() => leaseDue('normal'), () => leaseDue('slow')],
    hasRoom: () => slots.freeSlots('normal') > 0,
    attempt: deliver,
    onError,
  })

  async function leaseDue(slotClass: SlotClass): Promise<Leased[]> {
    const slowReceivers = slots.slowReceivers()
    const limit = slots.freeSlots(slotClass)
    if (limit <= 0 || (slotClass === 'slow' && slowReceivers.length === 0)) return []
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
    return leased.map(delivery => ({ delivery, slotClass, send }))
  }

  async function deliver({ delivery, slotClass, send }: Leased, stopping: AbortSignal): Promise<void> {
    const slot = slots.acquire(delivery.receiver, slotClass)
    const slowTimer = setTimeout(() => wakeIf(slot.moveToSlow()), slowAfterMs)
    const startedAtMs = performance.now()
    const outcome = await attempt(delivery, send, stopping)
    clearTimeout(slowTimer)
    wakeIf(slot.release(performance.now() - startedAtMs >= slowAfterMs))
    if (outcome.kind === 'failed' && outcome.reason === 'aborted') {
      await deliveries.release(delivery, new Date(clock.now()))
      return
    }
    const attemptOutcome = outcomeOf(outcome, delivery, dependencies.random(), clock.now())
    dependencies.outcomes[typeof attemptOutcome.result === 'object' ? 'retried' : attemptOutcome.result] += 1
    const isGone = outcome.kind === 'answered' && outcome.status === 410
    const record = isGone ? deliveries.recordLast : deliveries.recordAttempt
    await record(delivery, attemptOutcome, new Date(clock.now()))
  }

  /**
   * Polls again if deliveries may be waiting for the slot that became free. Earlier polls skipped them, because no slot
   * was free.
   */
  function wakeIf(mayHaveWaiting: boolean): void {
    if (mayHaveWaiting) worker.wake()
  }

  async function attempt(leased: LeasedDelivery, send: Send, signal: AbortSignal): Promise<SendOutcome> {
    const { url, body, user_id, secret_before } = leased
    const secret = secrets.unseal(leased.secret, user_id)
    if (secret === undefined) {
      return {
        kind: 'failed',
        reason: 'secret',
        message: 'the secret is encrypted with another auth.key_secret',
      }
    }
    // If the previous secret cannot be decrypted, the delivery is signed only with the current secret. Receivers should
    // verify with the current secret anyway.
    const previousSecret = secret_before === null ? undefined : secrets.unseal(secret_before, user_id)
    const signingSecrets = previousSecret === undefined ? [secret] : [secret, previousSecret]
    const headers = webhookHeaders(
      messageId(leased.alert_id, user_id),
      body,
      signingSecrets,
      Math.floor(clock.now() / 1000),
    )
    return send({ url, headers, body, signal })
  }

  return worker
}

/** Returns the `webhook-id` of an alert to a user. Receivers use it to detect repeated deliveries. */
export function messageId(alertId: string, userId: number): string {
  return `msg_${alertId.replaceAll('-', '')}_${userId}`
}
