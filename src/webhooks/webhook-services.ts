// Creates the service that delivers alerts. With workers, only the primary process runs it.
import type { Clock } from '../clock.ts'
import type { Plans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import type { Sealer } from '../identity/sealer.ts'
import type { DeliveryOutcomes } from '../observability/metrics/counters.ts'
import type { FailureLog } from '../storage/failure-log.ts'
import type { Storage } from '../storage/open.ts'
import { createPruner } from '../storage/pruner.ts'
import { createResolver } from './address/resolve.ts'
import { createAlertStore } from './alerts/alert-store.ts'
import { type Alerts, createAlerts } from './alerts/alerts.ts'
import { createDeliveryStore, type DeliveryStore } from './delivery/delivery-store.ts'
import { createDeliveryWorker, type SendSettings } from './delivery/delivery-worker.ts'
import { createSender } from './sending/send.ts'
import { createWebhookSecrets } from './webhook-secret.ts'
import type { WebhookStore } from './webhook-store.ts'

type Settings = Config['webhooks']

interface Dependencies {
  storage: Pick<Storage, 'database'>
  stores: { readonly webhooks: WebhookStore }
  /** Undefined if `auth.key_secret` is not set. */
  sealer: Sealer | undefined
  /** Returns the configured plans. */
  plans(): Plans
  clock: Clock
  failureLog: FailureLog
}

/** The settings that determine how alerts are sent and how long their log is kept. */
interface AlertSettings extends SendSettings {
  readonly retentionMs: number
}

export interface AlertService {
  readonly alerts: Alerts
  readonly deliveries: Pick<DeliveryStore, 'list' | 'retryNow'>
  /** @param graceMs the time for which deliveries in progress may continue */
  stop(graceMs: number): Promise<void>
}

/**
 * Delivers alerts. Deletes old deliveries, old alerts, and previous secrets that have expired.
 * @param settings returns the current settings; each delivery uses the settings at the time of its lease
 */
export function createAlertService(
  settings: () => AlertSettings,
  { storage, stores, sealer, plans, clock, failureLog }: Dependencies,
  outcomes: DeliveryOutcomes,
): AlertService {
  const deliveries = createDeliveryStore(storage.database, plans)
  const store = createAlertStore(storage.database, plans)
  const deliveryWorker = createDeliveryWorker({
    deliveries,
    secrets: createWebhookSecrets(sealer),
    sendSettings: settings,
    clock,
    random: Math.random,
    outcomes,
    onError: error => failureLog('webhook deliveries paused because of a database error', error),
  })
  const pruner = createPruner({
    async pruneBatch(now, limit) {
      const before = new Date(now.getTime() - settings().retentionMs)
      return Math.max(
        await deliveries.prune(before, limit),
        await store.prune(before, limit),
        await stores.webhooks.forgetExpiredSecrets(now, limit),
      )
    },
    clock,
    onError: error => failureLog('webhook delivery log not pruned', error),
  })
  return {
    alerts: createAlerts(store, clock, deliveryWorker.wake),
    deliveries: {
      list: deliveries.list,
      async retryNow(...retry) {
        const outcome = await deliveries.retryNow(...retry)
        if (outcome === 'due') deliveryWorker.wake()
        return outcome
      },
    },
    async stop(graceMs) {
      pruner.stop()
      await deliveryWorker.stop(graceMs)
    },
  }
}

/** Returns the settings of alerts. Call this only once for each configuration, because each call opens a resolver. */
export function alertSettingsOf({
  allow_private_networks: allowPrivate,
  timeout: timeoutMs,
  retention: retentionMs,
}: Settings): AlertSettings {
  return {
    timeoutMs,
    retentionMs,
    send: createSender({ resolve: createResolver({ allowPrivate }), allowPrivate, timeoutMs }),
  }
}
