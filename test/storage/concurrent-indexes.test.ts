// Queries for rare statuses in large tables use an index.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { createMailStore } from '../../src/mail/mail-store.ts'
import type { Database } from '../../src/storage/database.ts'
import { createDeliveryStore } from '../../src/webhooks/delivery/delivery-store.ts'
import { builtInPlans } from '../support/plans.ts'
import { describeOverSetups } from '../support/setups.ts'

describeOverSetups('a query on a large table', ({ openDatabase: open }) => {
  let database: Database
  /** A database that returns the plan of each query instead of running the query. */
  let planning: Database
  beforeAll(async () => {
    database = await open()
    planning = { ...database, query: (sql, values) => database.query(`explain ${sql}`, values) }
    const statuses = "case n when 1 then 'failed' when 2 then 'dropped' else 'delivered' end"
    await database.query(
      `insert into webhook_deliveries (alert_id, user_id, receiver, status, due_at, created_at)
       select gen_random_uuid(), n, 'one.test:443', ${statuses}, now(), now() from generate_series(1, 10000) n`,
    )
    await database.query(
      `insert into mails (user_id, kind, address, status, due_at, expires_at, created_at)
       select n, 'reset', 'a@b', case n when 1 then 'failed' else 'sent' end, now(), now(), now()
         from generate_series(1, 10000) n`,
    )
    await database.query('analyze webhook_deliveries')
    await database.query('analyze mails')
  })
  afterAll(() => database.close())

  it.each(['failed', 'dropped'] as const)('uses an index for deliveries with the status %s', async status => {
    const plan = await createDeliveryStore(planning, () => builtInPlans).list({ status, limit: 101 })
    expect(JSON.stringify(plan)).toContain(`webhook_deliveries_${status}`)
  })

  it('uses an index for failed mails', async () => {
    const plan = await createMailStore(planning).list({ status: 'failed', limit: 101 })
    expect(JSON.stringify(plan)).toContain('mails_failed')
  })
})
