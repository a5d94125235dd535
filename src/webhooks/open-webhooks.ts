// Webhooks put together: registering them where clients are served, and alerts' deliveries, once per host.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema/schema.ts'
import type { Sealer } from '../identity/sealer.ts'
import type { DeliveryOutcomes } from '../observability/metrics/counters.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { Backing } from '../storage/open.ts'
import { createPruner } from '../storage/pruner.ts'
import { createAlertStore } from './alerts/alert-store.ts'
import { type Alerts, createAlerts } from './alerts/alerts.ts'
import { createDeliveryStore, type DeliveryStore } from './delivery/delivery-store.ts'
import { createDelivering, type Sending } from './delivery/delivery-worker.ts'
import { createResolver } from './sending/resolve.ts'
import { createSender } from './sending/send.ts'
import { createSecrets } from './webhook-secret.ts'
import { createWebhookStore } from './webhook-store.ts'
import { createWebhooks, type Webhooks } from './webhooks.ts'

type Settings = Config['webhooks']

interface Parts {
  backing: Pick<Backing, 'database'>
  /** Nothing where `auth.key_secret` is not set. */
  sealer: Sealer | undefined
  clock: Clock
  failureLog: FailureLog
}

export function openWebhooks(
  { allow_private_networks: allowPrivate }: Settings,
  { backing, sealer, clock }: Omit<Parts, 'failureLog'>,
): Webhooks {
  return createWebhooks({
    store: createWebhookStore(backing.database),
    secrets: createSecrets(sealer),
    resolve: createResolver({ allowPrivate }),
    allowPrivate,
    randomBytes,
    clock,
  })
}

export interface OpenAlerts {
  readonly alerts: Alerts
  readonly deliveries: Pick<DeliveryStore, 'list'>
  /** What is taken from now on is delivered by these settings. */
  configure(settings: Settings): void
  /** @param grace milliseconds for what is being delivered */
  stop(grace: number): Promise<void>
}

/**
 * Delivers, and forgets deliveries and replaced secrets that have had their time.
 * @param settings to begin with @param outcomes where attempts are counted
 */
export function openAlerts(
  settings: Settings,
  { backing, sealer, clock, failureLog }: Parts,
  outcomes: DeliveryOutcomes,
): OpenAlerts {
  let { retention } = settings
  let sending = sendingBy(settings)
  const deliveries = createDeliveryStore(backing.database)
  const store = createAlertStore(backing.database)
  const webhooks = createWebhookStore(backing.database)
  const delivering = createDelivering({
    deliveries,
    webhooks,
    secrets: createSecrets(sealer),
    sending: () => sending,
    clock,
    random: Math.random,
    outcomes,
    onError: error => failureLog('deliveries cannot be taken or noted', error),
  })
  const pruner = createPruner({
    store: {
      async prune(now, limit) {
        const before = new Date(now.getTime() - retention)
        return Math.max(
          await deliveries.prune(before, limit),
          await store.prune(before, limit),
          await webhooks.forgetSecretsBefore(now, limit),
        )
      },
    },
    clock,
    onError: error => failureLog('the log of deliveries not pruned', error),
  })
  return {
    alerts: createAlerts({ store, clock, newId: randomUUID, onQueued: delivering.wake }),
    deliveries,
    configure(changed) {
      retention = changed.retention
      sending = sendingBy(changed)
    },
    async stop(grace) {
      pruner.stop()
      await delivering.stop(grace)
    },
  }
}

function sendingBy({ allow_private_networks: allowPrivate, timeout }: Settings): Sending {
  return { timeout, send: createSender({ resolve: createResolver({ allowPrivate }), allowPrivate, timeout }) }
}
