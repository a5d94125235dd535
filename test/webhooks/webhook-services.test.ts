// The gateway deletes expired deliveries, alerts and secrets automatically.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EmbeddedDatabase } from '../../src/storage/pglite/pglite.ts'
import { createUserQueue } from '../../src/users/user-record-store.ts'
import {
  type AlertService,
  alertSettingsOf,
  createAlertService,
} from '../../src/webhooks/webhook-services.ts'
import { createWebhookStore } from '../../src/webhooks/webhook-store.ts'
import { lendDatabase } from '../support/lent-database.ts'
import { builtInPlans } from '../support/plans.ts'
import { storedIn } from './delivery/stored.ts'

const day = 24 * 60 * 60_000
let database: EmbeddedDatabase
let opened: AlertService
beforeEach(async () => {
  database = await lendDatabase()
})
afterEach(async () => {
  await opened.stop(0)
  vi.useRealTimers()
  await database.close()
})

it('a replaced secret is deleted within minutes after it is no longer used for signatures', async () => {
  let time = Date.now()
  const stored = storedIn(database, () => time)
  const id = await stored.receiving('https://a.test/')
  await stored.webhook(id, 'https://a.test/')
  const before = async () => {
    const [row] = await database.query<{ secret_before: string | null }>('select secret_before from webhooks')
    return row?.secret_before
  }
  expect(await before()).not.toBeNull()
  time += day
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const settings = alertSettingsOf({
    allow_private_networks: false,
    timeout: 10_000,
    retention: 30 * day,
  })
  opened = createAlertService(
    () => settings,
    {
      storage: { database },
      stores: { webhooks: createWebhookStore(database, createUserQueue()) },
      sealer: undefined,
      plans: () => builtInPlans,
      clock: { now: () => time },
      failureLog: () => {},
    },
    { delivered: 0, retried: 0, failed: 0 },
  )
  await vi.advanceTimersByTimeAsync(10 * 60_000)
  await vi.waitFor(async () => expect(await before()).toBeNull())
})
