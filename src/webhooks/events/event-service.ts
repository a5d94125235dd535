// Sends events to the operator's service, and deletes old events. With workers, only the primary process runs this
// service.
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
  /** Undefined if no service receives events. Stored events then stay in the database. */
  readonly events?: EventsConfig | undefined
  readonly webhooks: Pick<Config['webhooks'], 'timeout' | 'retention'>
}

export interface EventService {
  wake(): void
  /** @param graceMs the time for which running attempts may continue */
  stop(graceMs: number): Promise<void>
}

interface Dependencies {
  database: Database
  clock: Clock
  /** Returns a random number from 0 to 1. */
  random(): number
  outcomes: DeliveryOutcomes
  /** Called after an error. @param what a log message that describes the failure */
  onError(what: string, error: unknown): void
  /**
   * Called when the service did not accept an event, at most once per minute.
   * @param problem one line: for example `status 500`, or the error if there was no response
   * @param failures number of failures since the last call, including this one
   */
  onNotTaken(problem: string, failures: number): void
  /** The CA in PEM format, which replaces the system's CAs. */
  ca?: string | undefined
}

/**
 * Maximum number of running attempts. All attempts go to the same service, and no two of them are for the same user.
 */
const maxRunning = 32

/**
 * The time by which a lease is longer than the time limit of the attempt. If a replica dies, another replica sends the
 * event when the lease has expired.
 */
const leaseMarginMs = 15_000

/** A leased event, with the settings at the time of the lease. */
interface Leased {
  readonly event: LeasedEvent
  readonly target: EventsConfig
  readonly send: Send
}

/** @param settings returns the active settings; an event is sent with the settings at the time of its lease */
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
    onError: error => dependencies.onError('event sending paused because of a database error', error),
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
