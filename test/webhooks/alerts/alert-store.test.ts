// The deletion of a user also deletes the alerts to this user, even if an alert is queued at the same time.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { postgresDatabase } from '../../support/databases.ts'
import { waitingForLocks } from '../../support/locks.ts'
import { describeWithServices } from '../../support/services.ts'
import { type Stored, storedIn } from '../delivery/stored.ts'

describeWithServices('an alert to a user who is deleted at the same time', () => {
  const now = new Date('2026-02-03T04:05:06.789Z')
  const alert = { id: '11111111-2222-4333-8444-555555555555', type: 'test', body: '{}' }
  let database: Awaited<ReturnType<typeof postgresDatabase>>
  let stored: Stored
  let user: number
  beforeAll(async () => {
    database = await postgresDatabase()
    stored = storedIn(database, () => now.getTime())
  })
  beforeEach(async () => {
    await stored.empty()
    user = await stored.receiving('https://one.test/')
  })
  afterAll(() => database.close())

  const remaining = () =>
    database.query('select id::text from alerts union all select id::text from webhook_deliveries')

  it('is deleted with the user if it was queued first', async () => {
    let deletion: Promise<unknown> | undefined
    const queued = await stored.alerts.queue(alert, user, now, async () => {
      deletion = database.query('delete from users where id = $1', [user])
      await Promise.race([deletion, waitingForLocks(database)])
    })
    await deletion
    expect(queued).toBe(1)
    expect(await remaining()).toEqual([])
  })

  it('is not stored if the deletion came first', async () => {
    let queued: Promise<number | 'user_unknown'> | undefined
    await database.transaction(async tx => {
      await tx.query('delete from users where id = $1', [user])
      queued = stored.alerts.queue(alert, user, now)
      await Promise.race([queued, waitingForLocks(database)])
    })
    expect(await queued).toBe('user_unknown')
    expect(await remaining()).toEqual([])
  })
})
