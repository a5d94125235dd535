// Creates users, webhooks and alerts in a store, and reads the deliveries back.
import { randomUUID } from 'node:crypto'
import type { Plans } from '../../../src/config/plans.ts'
import type { Database } from '../../../src/storage/database.ts'
import type { Plan } from '../../../src/users/user.ts'
import { createUserQueue } from '../../../src/users/user-record-store.ts'
import { createAlertStore } from '../../../src/webhooks/alerts/alert-store.ts'
import { createDeliveryStore, type DeliveryStatus } from '../../../src/webhooks/delivery/delivery-store.ts'
import type { LeaseRequest } from '../../../src/webhooks/delivery/lease-store.ts'
import { createWebhookStore } from '../../../src/webhooks/webhook-store.ts'
import { builtInPlans } from '../../support/plans.ts'
import { addUser } from '../../support/users.ts'

/** The secret of every webhook in these tests. */
export const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** Returns the lease request of a worker that has no running deliveries. @param now the time in milliseconds */
export function usualLease(now: number, leaseMs: number, changed: Partial<LeaseRequest> = {}): LeaseRequest {
  return {
    ...{ limit: 32, perReceiver: 4, busyReceivers: new Map(), slowReceivers: [], slotClass: 'normal' },
    ...{ now: new Date(now), leaseUntil: new Date(now + leaseMs) },
    ...changed,
  }
}

export interface Row {
  id: number
  user_id: number
  status: DeliveryStatus
  attempts: number
  response_status: number | null
  error: string | null
  due_at: Date
  finished_at: Date | null
}

export type Stored = ReturnType<typeof storedIn>

/** @param plans returns the configured plans; by default, these are the built-in plans */
export function storedIn(database: Database, now: () => number, plans = (): Plans => builtInPlans) {
  const webhooks = createWebhookStore(database, createUserQueue())
  const alerts = createAlertStore(database, plans)
  const deliveries = createDeliveryStore(database, plans)

  const user = (plan: Plan = 'pro') => addUser(database, { plan })

  /** @param url the URL of the webhook; its host and port identify the receiver */
  function webhook(userId: number, url: string, storedSecret = secret) {
    const { hostname, port } = new URL(url)
    return webhooks.put(
      userId,
      { url, receiver: `${hostname}:${port || 443}`, secret: storedSecret },
      new Date(now()),
    )
  }

  return {
    webhooks,
    alerts,
    deliveries,
    user,
    webhook,

    /** Creates a pro user with a webhook. @returns the ID of the user */
    async receiving(url: string): Promise<number> {
      const id = await user()
      await webhook(id, url)
      return id
    },

    /** Queues an alert to the user `userId`. If `userId` is omitted, queues it to all users. */
    alert(userId?: number, type = 'test', data: unknown = {}): Promise<number | 'user_unknown'> {
      const at = new Date(now())
      const body = JSON.stringify({ type, timestamp: at.toISOString(), data })
      return alerts.queue({ id: randomUUID(), type, body }, userId, at)
    },

    rows(userId?: number): Promise<Row[]> {
      return database.query<Row>(
        `select * from webhook_deliveries where $1::bigint is null or user_id = $1 order by id`,
        [userId ?? null],
      )
    },

    async empty(): Promise<void> {
      for (const table of ['webhook_deliveries', 'alerts', 'users'])
        await database.query(`delete from ${table}`)
    },
  }
}
