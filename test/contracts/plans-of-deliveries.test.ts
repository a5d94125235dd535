// Tests on both databases which deliveries are sent, postponed or dropped if operators configure their own plans.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import type { LeaseRequest } from '../../src/webhooks/delivery/lease-store.ts'
import { plansNamed } from '../support/plans.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { type Stored, storedIn, usualLease } from '../webhooks/delivery/stored.ts'

const start = Date.parse('2026-02-03T04:05:06.789Z')
const hour = 3_600_000
const lease = 25_000

describeOnBothSetups('a delivery to a user', ({ openDatabase }) => {
  let database: Database
  let stored: Stored
  let time: number
  let plans = plansNamed({})
  beforeAll(async () => {
    database = await openDatabase()
    stored = storedIn(
      database,
      () => time,
      () => plans,
    )
  })
  beforeEach(async () => {
    time = start
    plans = plansNamed({ basic: false, big: true, other: true })
    await stored.empty()
  })
  afterAll(() => database.close())

  const claim = (changed: Partial<LeaseRequest> = {}) =>
    stored.deliveries.lease(usualLease(time, lease, changed))
  const claimed = async (changed: Partial<LeaseRequest> = {}) =>
    (await claim(changed)).map(({ user_id, attempts }) => ({ user_id, attempts }))
  async function receiving(plan: string, url = 'https://a.test/'): Promise<number> {
    const id = await stored.user(plan)
    await stored.webhook(id, url)
    return id
  }
  const changePlan = (id: number, plan: string) =>
    database.query('update users set plan = $2 where id = $1', [id, plan])
  const retry = (id: number) => stored.deliveries.retryNow(id, new Date(time), () => async () => {})

  it('is queued and sent only if the plan of the user has webhooks', async () => {
    const ids = []
    for (const plan of ['big', 'other', 'basic', 'unknown', 'pro']) ids.push(await receiving(plan))
    expect(await stored.alert()).toBe(2)
    expect((await claimed()).map(({ user_id }) => user_id).sort()).toEqual(ids.slice(0, 2))
    for (const id of ids.slice(2)) expect(await stored.alert(id)).toBe(0)
  })

  it.each(['normal', 'slow'] as const)(
    'is postponed by an hour in the class `%s`, without an attempt, while the plan of the user is not configured',
    async slotClass => {
      const as = { slotClass, slowReceivers: slotClass === 'slow' ? ['a.test:443'] : [] }
      const id = await receiving('big')
      await stored.alert(id)
      const [first] = await claim(as)
      const failed = { responseStatus: 500, error: null, result: { retryAt: new Date(time + 5_000) } }
      if (first !== undefined) await stored.deliveries.recordAttempt(first, failed, new Date(time))
      plans = plansNamed({ basic: false })
      time += 5_000
      for (let round = 0; round < 2; round += 1) {
        expect(await claim(as)).toEqual([])
        expect(await stored.rows(id)).toMatchObject([
          { status: 'pending', attempts: 1, due_at: new Date(time + hour), finished_at: null },
        ])
        time += hour
      }
      plans = plansNamed({ big: true })
      time -= 1
      expect(await claim(as)).toEqual([])
      time += 1
      expect(await claimed(as)).toEqual([{ user_id: id, attempts: 2 }])
    },
  )

  it('is dropped if the plan of the user is configured without webhooks', async () => {
    const id = await receiving('big')
    await stored.alert(id)
    plans = plansNamed({ big: false })
    expect(await claim()).toEqual([])
    expect(await stored.rows(id)).toMatchObject([{ status: 'dropped', attempts: 0 }])
  })

  it.each(['is inactive', 'has no webhook'])(
    'is dropped if the user %s, even if the plan of the user is not configured',
    async how => {
      const id = await receiving('big')
      await stored.alert(id)
      await changePlan(id, 'unknown')
      if (how === 'is inactive') await database.query('update users set is_active = 0')
      else await database.query('delete from webhooks')
      expect(await claim()).toEqual([])
      expect(await stored.rows(id)).toMatchObject([{ status: 'dropped', attempts: 0 }])
    },
  )

  it('is not delayed by 300 older deliveries that are postponed, even if some of them have the same receiver', async () => {
    const many = []
    for (let i = 0; i < 3; i += 1)
      many.push(await receiving('big', i === 0 ? undefined : `https://b${i}.test/`))
    for (let i = 0; i < 100; i += 1) for (const id of many) await stored.alert(id)
    time += 1_000
    const late = await receiving('other')
    await stored.alert(late)
    for (const id of many) await changePlan(id, 'unknown')
    expect(await claim({ limit: 2 })).toEqual([])
    expect(await claimed({ limit: 2 })).toEqual([{ user_id: late, attempts: 1 }])
    const rows = (await stored.rows()).filter(({ user_id }) => user_id !== late)
    expect(new Set(rows.map(({ due_at }) => due_at.getTime()))).toEqual(new Set([time + hour]))
    expect(rows.every(({ status, attempts }) => status === 'pending' && attempts === 0)).toBe(true)
  })

  it('is postponed by concurrent replicas without an error', async () => {
    const ids = []
    for (let i = 0; i < 60; i += 1) ids.push(await receiving('big', `https://r${i % 7}.test/`))
    await stored.alert()
    await database.query("update users set plan = 'unknown'")
    const polls = Array.from({ length: 8 }, () => claim({ limit: 3 }))
    expect((await Promise.all(polls)).flat()).toEqual([])
    while (
      (await database.query('select 1 from webhook_deliveries where due_at <= $1', [new Date(time)])).length
    )
      expect(await claim()).toEqual([])
    expect((await stored.rows()).map(({ status }) => status)).toEqual(Array(60).fill('pending'))
  })

  it('finishes its running attempt if the user then gets a plan that is not configured, but is not retried with this plan', async () => {
    const id = await receiving('big')
    await stored.alert(id)
    const [leased] = await claim()
    await changePlan(id, 'unknown')
    expect(await claim()).toEqual([])
    const failed = { responseStatus: 500, error: null, result: { retryAt: new Date(time + 5_000) } }
    if (leased !== undefined) await stored.deliveries.recordAttempt(leased, failed, new Date(time))
    expect(await stored.rows(id)).toMatchObject([{ attempts: 1, response_status: 500 }])
    time += 5_000
    expect(await claim()).toEqual([])
    expect(await stored.rows(id)).toMatchObject([{ status: 'pending', attempts: 1 }])
  })

  it('can be retried by an operator only if the plan of the user has webhooks', async () => {
    const id = await receiving('big')
    await stored.alert(id)
    const [{ id: delivery } = { id: 0 }] = await stored.rows(id)
    for (const [plan, outcome] of [
      ['unknown', 'over'],
      ['basic', 'over'],
      ['other', 'due'],
    ] as const) {
      await changePlan(id, plan)
      expect([plan, await retry(delivery)]).toEqual([plan, outcome])
    }
  })
})
