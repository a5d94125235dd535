// Takes due deliveries and sends them, on every replica at once: each is taken by one of them, for as long as its lease.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../../clock.ts'
import type { DeliveryOutcomes } from '../../observability/metrics/counters.ts'
import type { Send, SendOutcome } from '../sending/send.ts'
import { sign } from '../signature.ts'
import type { Secrets } from '../webhook-secret.ts'
import type { WebhookStore } from '../webhook-store.ts'
import { createLanes, type Lane, type LaneSizes } from './delivery-slots.ts'
import type { Attempted, DeliveryStore } from './delivery-store.ts'
import type { Claimed } from './lease-store.ts'
import { readRetryAfter } from './retry-after.ts'
import { retryDelay } from './schedule.ts'

export interface Delivering {
  /** There is something to deliver: it is looked for now, not at the next look. */
  wake(): void
  /** Takes no more, ends what is under way after `grace` milliseconds, and gives back what was not sent. */
  stop(grace: number): Promise<void>
}

export interface Sending {
  readonly send: Send
  /** `webhooks.timeout`, milliseconds. */
  readonly timeout: number
}

interface Parts {
  deliveries: Pick<DeliveryStore, 'claim' | 'settle' | 'giveBack'>
  webhooks: Pick<WebhookStore, 'removeRegistration'>
  secrets: Secrets
  /** How, by the settings of the moment: an attempt keeps those under which it was taken. */
  sending(): Sending
  clock: Clock
  /** 0 to 1. */
  random(): number
  /** Where attempts are counted as they end. */
  outcomes: DeliveryOutcomes
  /** Told of a store that failed; what was taken is taken again when its lease has ended. */
  onError(error: unknown): void
}

/** Sockets that wait for an answer cost little; those that are answered at once never need many. */
const sizes: LaneSizes = { usual: 32, slow: 128, perReceiver: 4 }

/** Milliseconds between two looks for what is due, and between two that were asked for: what ends together is one look. */
const interval = 1_000
const pause = 50

/** Milliseconds without an answer after which a receiver is slow. */
const quick = 1_000

/** Milliseconds for which a lease outlasts the attempt: what a dead replica had is sent after that (CONTRACT §5). */
const leaseMargin = 15_000

export function createDelivering(parts: Parts): Delivering {
  const { deliveries, webhooks, secrets, clock, onError } = parts
  const lanes = createLanes(sizes)
  const stopping = new AbortController()
  // One for each that is under way, and none of them stays.
  setMaxListeners(0, stopping.signal)
  const underWay = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined = setTimeout(look, interval).unref()
  let looking: Promise<void> | undefined
  let isWoken = false
  /** The last look found some: there may be more as soon as a place is free. */
  let mayBeMore = false
  let isFailing = false
  let isStopped = false

  function look(): void {
    isWoken = true
    if (looking !== undefined || isStopped) return
    clearTimeout(timer)
    looking = takeWhileWoken()
  }

  async function takeWhileWoken(): Promise<void> {
    while (isWoken && !isStopped) {
      isWoken = false
      try {
        mayBeMore = (await take('usual')) + (await take('slow')) > 0
        if (mayBeMore && lanes.free('usual') > 0) isWoken = true
        isFailing = false
      } catch (error) {
        failed(error)
      }
      await sleep(pause)
    }
    looking = undefined
    if (!isStopped) timer = setTimeout(look, interval).unref()
  }

  /** Once: a store that is away fails for every delivery that is under way. */
  function failed(error: unknown): void {
    if (!isFailing) onError(error)
    isFailing = true
  }

  /** @returns how many were taken */
  async function take(lane: Lane): Promise<number> {
    const slow = lanes.slow()
    const limit = lanes.free(lane)
    if (isStopped || limit <= 0 || (lane === 'slow' && slow.length === 0)) return 0
    const now = clock.now()
    const { send, timeout } = parts.sending()
    const claimed = await deliveries.claim({
      limit,
      perReceiver: lanes.perReceiver,
      busy: lanes.busy(),
      slow,
      lane,
      now: new Date(now),
      until: new Date(now + timeout + leaseMargin),
    })
    for (const one of claimed) {
      const attempt = deliver(one, lane, send)
        .catch(failed)
        .finally(() => {
          underWay.delete(attempt)
          if (mayBeMore) look()
        })
      underWay.add(attempt)
    }
    return claimed.length
  }

  async function deliver(claimed: Claimed, lane: Lane, send: Send): Promise<void> {
    const place = lanes.begin(claimed.receiver, lane)
    const late = setTimeout(() => lookIf(place.moveAside()), quick)
    const begun = performance.now()
    const outcome = await attempt(claimed, send)
    clearTimeout(late)
    lookIf(place.end(performance.now() - begun >= quick))
    if (outcome.kind === 'failed' && outcome.reason === 'aborted') {
      await deliveries.giveBack(claimed, new Date(clock.now()))
      return
    }
    const ended = attempted(claimed, outcome)
    parts.outcomes[typeof ended.result === 'object' ? 'retried' : ended.result] += 1
    await deliveries.settle(claimed, ended, new Date(clock.now()))
    if (outcome.kind === 'answered' && outcome.status === 410) {
      await webhooks.removeRegistration(claimed.user_id, claimed.registration, new Date(clock.now()))
    }
  }

  /** A look passes over what has no free place, and is told of none that comes free: only of what it took. */
  function lookIf(isAwaited: boolean): void {
    if (isAwaited) look()
  }

  async function attempt(claimed: Claimed, send: Send): Promise<SendOutcome> {
    const { url, body, user_id, secret_before } = claimed
    const secret = secrets.read(claimed.secret, user_id)
    if (secret === undefined) {
      return { kind: 'failed', reason: 'secret', message: 'the secret was sealed under another key_secret' }
    }
    // One that cannot be read takes only its own signature away: receivers are to check by the current one.
    const before = secret_before === null ? undefined : secrets.read(secret_before, user_id)
    const signing = before === undefined ? [secret] : [secret, before]
    const headers = fieldsOf(claimed, signing, Math.floor(clock.now() / 1000))
    return send({ url, headers, body, signal: stopping.signal })
  }

  function attempted({ attempts }: Claimed, outcome: SendOutcome): Attempted {
    const responseStatus = outcome.kind === 'answered' ? outcome.status : null
    const error = outcome.kind === 'failed' ? `${outcome.reason}: ${outcome.message}` : null
    if (responseStatus !== null && responseStatus >= 200 && responseStatus < 300) {
      return { responseStatus, error, result: 'delivered' }
    }
    const now = clock.now()
    const retryAfter = outcome.kind === 'answered' ? outcome.retryAfter : undefined
    const asked = retryAfter === undefined ? 0 : readRetryAfter(retryAfter, now)
    const delay = responseStatus === 410 ? undefined : retryDelay(attempts, parts.random(), asked)
    const result = delay === undefined ? 'failed' : { retryAt: new Date(now + delay) }
    return { responseStatus, error, result }
  }

  return {
    wake: look,
    async stop(grace) {
      isStopped = true
      clearTimeout(timer)
      const cut = setTimeout(() => stopping.abort(), grace)
      // What a look is about to take is under way too.
      await looking
      await Promise.all(underWay)
      clearTimeout(cut)
    },
  }
}

/** As Standard Webhooks has them. The id is the same for every attempt; each secret makes a signature, in order. */
function fieldsOf({ alert_id, user_id, body }: Claimed, signing: readonly string[], timestamp: number) {
  const id = messageId(alert_id, user_id)
  return {
    'content-type': 'application/json',
    'user-agent': 'peage',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signing.map(secret => sign(secret, id, timestamp, body)).join(' '),
  }
}

/** The `webhook-id` of an alert to a user, by which its receiver tells a repetition. */
export function messageId(alertId: string, userId: number): string {
  return `msg_${alertId.replaceAll('-', '')}_${userId}`
}
