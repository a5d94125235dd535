// The webhooks of one gateway, put together: registering them, emitting alerts, delivering and forgetting.
import { randomBytes, randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { Backing } from '../backing/open.ts'
import { createPruner } from '../backing/pruner.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema.ts'
import type { Sealer } from '../identity/sealed.ts'
import { createAlertStore } from './alert-store.ts'
import { type Alerts, createAlerts } from './alerts.ts'
import { createDelivering } from './delivering.ts'
import { createDeliveryStore, type DeliveryStore } from './delivery-store.ts'
import { createResolver } from './resolve.ts'
import { createSecrets } from './secrets.ts'
import { createSender } from './send.ts'
import { createWebhookStore } from './webhook-store.ts'
import { createWebhooks, type Webhooks } from './webhooks.ts'

export interface OpenWebhooks {
  readonly webhooks: Webhooks
  readonly alerts: Alerts
  readonly deliveries: Pick<DeliveryStore, 'list'>
  /** @param grace milliseconds for what is being delivered */
  stop(grace: number): Promise<void>
}

interface Parts {
  config: Config
  backing: Backing
  clock: Clock
  logger: Logger
}

/** @param sealer nothing where `auth.key_secret` is not set */
export function openWebhooks(
  { config, backing, clock, logger }: Parts,
  sealer: Sealer | undefined,
): OpenWebhooks {
  const { allow_private_networks: allowPrivate, timeout, retention } = config.webhooks
  const store = createWebhookStore(backing.database)
  const deliveries = createDeliveryStore(backing.database)
  const alertStore = createAlertStore(backing.database)
  const secrets = createSecrets(sealer)
  const resolve = createResolver({ allowPrivate })
  const delivering = createDelivering({
    deliveries,
    webhooks: store,
    secrets,
    send: createSender({ resolve, allowPrivate, timeout }),
    clock,
    random: Math.random,
    timeout,
    onError: error => logger.warn({ err: error }, 'deliveries cannot be taken or noted'),
  })
  const pruner = createPruner({
    store: {
      async prune(now, limit) {
        const before = new Date(now.getTime() - retention)
        const ended = await deliveries.prune(before, limit)
        return Math.max(ended, await alertStore.prune(before, limit))
      },
    },
    clock,
    onError: error => logger.warn({ err: error }, 'the log of deliveries not pruned'),
  })
  return {
    webhooks: createWebhooks({ store, secrets, resolve, allowPrivate, randomBytes, clock }),
    alerts: createAlerts({ store: alertStore, clock, newId: randomUUID, onQueued: delivering.wake }),
    deliveries,
    async stop(grace) {
      pruner.stop()
      await delivering.stop(grace)
    },
  }
}
