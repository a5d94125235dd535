// Sends events to the service that the operator chose, once per host, and prunes those that have ended.
import type { Clock } from '../../clock.ts'
import type { Config, EventsConfig } from '../../config/sections/schema.ts'
import { createLogThrottle } from '../../observability/log-throttle.ts'
import type { DeliveryOutcomes } from '../../observability/metrics/counters.ts'
import { startOutboxWorker } from '../../outbox/outbox-worker.ts'
import type { Database } from '../../storage/database.ts'
import { createPruner } from '../../storage/pruner.ts'
import { createResolver } from '../address/resolve.ts'
import { outcomeOf } from '../sending/outcome.ts'
import { createSender, type Send } from '../sending/send.ts'
import { webhookHeaders } from '../webhook-secret.ts'
import { createEventStore, type LeasedEvent } from './event-store.ts'

export interface EventSettings {
  /** Undefined where no service is told: what is stored stays where it is. */
  readonly events?: EventsConfig | undefined
  readonly webhooks: Pick<Config['webhooks'], 'timeout' | 'retention'>
}

export interface EventService {
  /** Polls now. */
  wake(): void
  /** @param graceMs for running attempts */
  stop(graceMs: number): Promise<void>
}

interface Dependencies {
  database: Database
  clock: Clock
  /** From 0 to 1. */
  random(): number
  /** Counts attempts as they end. */
  outcomes: DeliveryOutcomes
  /** @param what could not be done */
  onError(what: string, error: unknown): void
  /**
   * Called when the service did not take an event, at most once a minute.
   * @param problem in one line: `status 500`, or what came in the place of an answer
   * @param failures since the last call, this one included
   */
  onNotTaken(problem: string, failures: number): void
  /** PEM; trusted instead of the system's CAs. */
  ca?: string | undefined
}

/** Attempts under way at once; all go to one service, and each is of another user. */
const maxRunning = 32

/** How long a lease outlasts the attempt, as with alerts; then another replica sends what a dead one had leased. */
const leaseMarginMs = 15_000

/** What an attempt keeps of the settings that it was leased under. */
interface Leased {
  readonly event: LeasedEvent
  readonly target: EventsConfig
  readonly send: Send
}

/** @param settings returns the active settings; an event is sent by the settings under which it was leased */
export function createEventService(settings: () => EventSettings, dependencies: Dependencies): EventService {
  const { database, clock, outcomes } = dependencies
  const store = createEventStore(database)
  const resolve = createResolver({ allowPrivate: true })
  const throttle = createLogThrottle(clock)
  async function lease(running: number): Promise<Leased[]> {
    const { events: target, webhooks } = settings()
    if (target === undefined || running >= maxRunning) return []
    const now = clock.now()
    const { ca } = dependencies
    const timeoutMs = webhooks.timeout
    const send = createSender({ resolve, allowPrivate: true, isTrusted: true, timeoutMs, ca })
    const leaseUntil = new Date(now + timeoutMs + leaseMarginMs)
    const leased = await store.lease(maxRunning - running, new Date(now), leaseUntil)
    return leased.map(event => ({ event, target, send }))
  }

  async function attempt({ event, target, send }: Leased, signal: AbortSignal): Promise<void> {
    const { body } = event
    const id = `msg_${event.message_id.replaceAll('-', '')}`
    const headers = webhookHeaders(id, body, [target.secret], Math.floor(clock.now() / 1000))
    const answer = await send({ url: target.url, headers, body, signal })
    const now = clock.now()
    if (answer.kind === 'failed' && answer.reason === 'aborted') {
      await store.release(event, new Date(now))
      return
    }
    const outcome = outcomeOf(answer, event, dependencies.random(), now)
    outcomes[typeof outcome.result === 'object' ? 'retried' : outcome.result] += 1
    if (outcome.result !== 'delivered') {
      const failures = throttle('')
      if (failures !== undefined)
        dependencies.onNotTaken(outcome.error ?? `status ${outcome.responseStatus}`, failures)
    }
    await store.recordAttempt(event, outcome, new Date(now))
  }

  const worker = startOutboxWorker({
    lease: [lease],
    hasRoom: running => running < maxRunning,
    attempt,
    onError: error => dependencies.onError('events cannot be leased or recorded', error),
  })
  const pruner = createPruner({
    async pruneBatch(now, limit) {
      const { events: target, webhooks } = settings()
      const before = new Date(now.getTime() - webhooks.retention)
      const unsent = target === undefined ? await store.pruneUnsent(before, limit) : 0
      return Math.max(unsent, await store.prune(before, limit))
    },
    clock,
    onError: error => dependencies.onError('events not pruned', error),
  })
  return {
    wake: worker.wake,
    async stop(graceMs) {
      pruner.stop()
      await worker.stop(graceMs)
    },
  }
}
