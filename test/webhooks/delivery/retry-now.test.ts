// An operator can retry a delivery at once.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../../src/storage/database.ts'
import type { LeasedDelivery } from '../../../src/webhooks/delivery/lease-store.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { type Stored, storedIn, usualLease } from './stored.ts'

const start = Date.parse('2026-02-03T04:05:06.789Z')
const leaseMs = 25_000

describeOverSetups('an immediate retry', ({ openDatabase: open }) => {
  let database: Database
  let stored: Stored
  let time: number
  let user: number
  let audited: number[]
  beforeAll(async () => {
    database = await open()
    stored = storedIn(database, () => time)
  })
  beforeEach(async () => {
    time = start
    audited = []
    await stored.empty()
    user = await stored.receiving('https://one.test/')
    await stored.alert(user)
  })
  afterAll(() => database.close())

  const row = async () => (await stored.rows(user))[0]
  const lease = (): Promise<LeasedDelivery[]> => stored.deliveries.lease(usualLease(time, leaseMs))
  const retry = async () =>
    stored.deliveries.retryNow((await row())?.id ?? 0, new Date(time), userId => async () => {
      audited.push(userId)
    })
  async function end(result: 'delivered' | 'failed' | { retryAt: Date }) {
    const [leased] = await lease()
    const outcome = { responseStatus: result === 'delivered' ? 204 : 500, error: null, result }
    await stored.deliveries.recordAttempt(leased as LeasedDelivery, outcome, new Date(time))
  }

  it('makes a waiting delivery due at once, and further attempts remain possible', async () => {
    await end({ retryAt: new Date(start + 3_600_000) })
    time += 1_000
    expect(await lease()).toEqual([])
    expect(await retry()).toBe('due')
    expect(audited).toEqual([user])
    expect(await lease()).toMatchObject([{ attempts: 2, is_last: false }])
  })

  it('makes a failed delivery due at once, for one more attempt to the user’s current webhook', async () => {
    await end('failed')
    await stored.webhook(user, 'https://other.test:8443/')
    time += 1_000
    expect(await retry()).toBe('due')
    expect(await row()).toMatchObject({ status: 'pending', finished_at: null, attempts: 1 })
    expect(await lease()).toMatchObject([
      { attempts: 2, is_last: true, url: 'https://other.test:8443/', receiver: 'other.test:8443' },
    ])
  })

  it('changes nothing during a running attempt, because this attempt counts as the retry', async () => {
    await lease()
    time += leaseMs - 1
    expect(await retry()).toBe('due')
    expect(await row()).toMatchObject({ attempts: 1, due_at: new Date(start + leaseMs) })
    time += 1
    expect(await lease()).toHaveLength(1)
  })

  it('makes a delivery due if a worker has leased it and returned it without an attempt', async () => {
    const [leased] = await lease()
    await stored.deliveries.release(leased as LeasedDelivery, new Date(time))
    expect(await retry()).toBe('due')
    expect(await lease()).toMatchObject([{ attempts: 1 }])
  })

  describe('changes nothing', () => {
    const isOver = async () => {
      const before = await row()
      expect(await retry()).toBe('over')
      expect(await row()).toEqual(before)
      expect(audited).toEqual([])
    }

    it('if the delivery has arrived', async () => {
      await end('delivered')
      await isOver()
    })

    it('if the delivery was dropped, even if the user has a webhook again', async () => {
      await stored.webhooks.remove(user, new Date(time))
      await isOver()
      await stored.webhook(user, 'https://one.test/')
      await isOver()
    })

    it('if the delivery has failed and its user no longer has a webhook', async () => {
      await end('failed')
      await stored.webhooks.remove(user, new Date(time))
      await isOver()
    })

    it.each(["plan = 'free'", 'is_active = 0'])(
      'while the user has %s, but works as soon as the user can receive deliveries again',
      async change => {
        await end({ retryAt: new Date(start + 3_600_000) })
        await database.query(`update users set ${change}`)
        await isOver()
        await database.query("update webhook_deliveries set status = 'failed', finished_at = due_at")
        await isOver()
        await database.query("update users set plan = 'pro', is_active = 1")
        expect(await retry()).toBe('due')
        expect(await lease()).toMatchObject([{ attempts: 2, is_last: true }])
      },
    )
  })

  it('returns `unknown` if the delivery does not exist', async () => {
    const step = () => async () => {
      audited.push(0)
    }
    expect(await stored.deliveries.retryNow(9007199254740991, new Date(time), step)).toBe('unknown')
    expect(audited).toEqual([])
  })

  it('causes only one lease, even together with simultaneous retries, and changes nothing if it cannot be audited', async () => {
    await end('failed')
    const id = (await row())?.id ?? 0
    const failing = () => async () => {
      throw new Error('not audited')
    }
    await expect(stored.deliveries.retryNow(id, new Date(time), failing)).rejects.toThrow('not audited')
    expect(await row()).toMatchObject({ status: 'failed' })
    const answers = await Promise.all([retry(), retry(), lease(), retry(), retry(), lease()])
    expect(answers.filter(answer => typeof answer === 'string')).toEqual(Array(4).fill('due'))
    expect([...answers.flat(), ...(await lease())].filter(each => typeof each === 'object')).toHaveLength(1)
  })
})
