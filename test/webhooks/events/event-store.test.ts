// Tests that stored events are leased in order, end only once, and are pruned later.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Database } from '../../../src/storage/database.ts'
import type { LeasedEvent } from '../../../src/webhooks/events/event-store.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { eventsIn, type StoredEvents } from './stored-events.ts'

const start = Date.parse('2026-02-03T04:05:06.789Z')
const leaseMs = 25_000
const delivered = { responseStatus: 204, error: null, result: 'delivered' } as const
const failed = { responseStatus: 410, error: null, result: 'failed' } as const

describeOverSetups('events', ({ openDatabase: open }) => {
  let database: Database
  let stored: StoredEvents
  let time: number
  beforeAll(async () => {
    database = await open()
    stored = eventsIn(database, () => time)
  })
  beforeEach(async () => {
    time = start
    await stored.empty()
  })
  afterAll(() => database.close())

  const lease = (limit = 32) => stored.store.lease(limit, new Date(time), new Date(time + leaseMs))
  const typesOf = (leased: LeasedEvent[]) => leased.map(({ body }) => JSON.parse(body).type)
  const one = async () => (await lease(1))[0] as LeasedEvent
  const record = (event: LeasedEvent, outcome: Parameters<typeof stored.store.recordAttempt>[1]) =>
    stored.store.recordAttempt(event, outcome, new Date(time))

  it('are due at once, and have the same body and ID in each attempt', async () => {
    const id = await stored.user()
    await stored.change(id, ['a'])
    const [event] = await lease()
    expect(event).toEqual({
      id: expect.any(Number),
      attempts: 1,
      message_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      user_id: id,
      body: JSON.stringify({ type: 'a', userId: id }),
    })
    time += leaseMs
    expect(await lease()).toEqual([{ ...event, attempts: 2 }])
  })

  it('wait for earlier events of the same user, even from the same transaction, but never for events of other users', async () => {
    const ids = [await stored.user(), await stored.user()]
    await stored.change(ids[0] ?? 0, ['a1', 'a2', 'a3'])
    await stored.change(ids[1] ?? 0, ['b1'])
    await stored.change(ids[0] ?? 0, ['a4'])
    await stored.change(ids[1] ?? 0, ['b2'])
    const order: string[] = []
    for (let round = 0; round < 4; round += 1) {
      const leased = await lease()
      order.push(typesOf(leased).sort().join(' '))
      for (const event of leased) await record(event, round % 2 === 0 ? delivered : failed)
    }
    expect(order).toEqual(['a1 b1', 'a2 b2', 'a3', 'a4'])
    expect(await lease()).toEqual([])
  })

  it('delay the next events of their user even if they are retried or returned', async () => {
    const id = await stored.user()
    await stored.change(id, ['a', 'b'])
    await record(await one(), {
      responseStatus: 500,
      error: null,
      result: { retryAt: new Date(time + 5_000) },
    })
    expect(await lease()).toEqual([])
    time += 5_000
    const again = await one()
    expect(again).toMatchObject({ attempts: 2 })
    await stored.store.release(again, new Date(time))
    expect(typesOf(await lease())).toEqual(['a'])
    expect(await lease()).toEqual([])
  })

  it('get an outcome only from the holder of the current lease, not from the holder of an expired lease', async () => {
    const id = await stored.user()
    await stored.change(id, ['a', 'b'])
    const late = await one()
    time += leaseMs
    const taken = await one()
    await record(late, delivered)
    expect(await stored.rows()).toMatchObject([{ status: 'pending', attempts: 2 }, { due_at: null }])
    await record(taken, delivered)
    await record(late, failed)
    expect(await stored.rows()).toMatchObject([
      { status: 'delivered', finished_at: new Date(time) },
      { status: 'pending', due_at: new Date(time) },
    ])
  })

  it('stay after the deletion of their user until they are delivered or failed, and keep their order', async () => {
    const id = await stored.user()
    await stored.change(id, ['a'])
    await stored.change(id, ['deleted'], async tx => {
      await tx.query('delete from users where id = $1', [id])
    })
    await record(await one(), delivered)
    const last = await one()
    expect(typesOf([last])).toEqual(['deleted'])
    expect(await stored.rows()).toMatchObject([{ type: 'deleted', status: 'pending' }])
    await record(last, failed)
    expect(await stored.rows()).toEqual([])
  })

  it('are deleted together with their user if they have ended', async () => {
    const [id, other] = [await stored.user(), await stored.user()]
    await stored.change(id, ['a', 'b'])
    await stored.change(other, ['c'])
    for (const event of await lease()) await record(event, delivered)
    await database.query('delete from users where id = $1', [id])
    expect(await stored.rows()).toMatchObject([
      { type: 'b', status: 'pending' },
      { type: 'c', status: 'delivered' },
    ])
  })

  it('are rolled back together with the change of the user', async () => {
    const id = await stored.user()
    const undone = stored.change(id, ['a'], async () => {
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(await stored.rows()).toEqual([])
  })

  it('are pruned in batches, but only after they have ended', async () => {
    for (const type of ['a', 'b', 'c']) await stored.change(await stored.user(), [type])
    for (const event of await lease()) await record(event, delivered)
    const pending = await stored.user()
    await stored.change(pending, ['d', 'e'])
    const prune = (limit: number, at: number) => stored.store.prune(new Date(at), limit)
    expect(await prune(10, start)).toBe(0)
    expect([await prune(2, start + 1), await prune(2, start + 1)]).toEqual([2, 1])
    expect(await stored.rows()).toMatchObject([{ user_id: pending }, { user_id: pending }])
  })

  it('are pruned unsent only if all pending events of their user are old, so no event waits for a pruned event', async () => {
    const [old, both] = [await stored.user(), await stored.user()]
    await stored.change(old, ['a', 'b'])
    await stored.change(both, ['c'])
    time += 1_000
    await stored.change(both, ['d'])
    expect(await stored.store.pruneUnsent(new Date(start), 10)).toBe(0)
    expect(await stored.store.pruneUnsent(new Date(start + 1), 10)).toBe(2)
    expect(await stored.rows()).toMatchObject([{ type: 'c' }, { type: 'd' }])
    expect(await stored.store.pruneUnsent(new Date(time + 1), 10)).toBe(2)
  })

  it('are leased only once by simultaneous requests', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => stored.user()))
    for (const id of ids) await stored.change(id, ['a', 'b'])
    const leased = (await Promise.all(Array.from({ length: 8 }, () => lease(7)))).flat()
    const all = [...leased, ...(await lease(100))]
    expect(new Set(all.map(({ id }) => id)).size).toBe(20)
    expect(all).toHaveLength(20)
  })
})

describeWithServices('an event behind other events', () => {
  it('becomes due even if the previous event of its user ends while it is stored', async () => {
    const database = await postgresDatabase()
    try {
      const stored = eventsIn(database, () => start)
      const lease = () => stored.store.lease(10, new Date(start), new Date(start + leaseMs))
      const id = await stored.user()
      await stored.change(id, ['a'])
      const [first] = await lease()
      // This change locks the row of the user. It stores its event while the earlier event is still pending.
      let ending: Promise<void> = Promise.resolve()
      await stored.change(id, ['b'], async () => {
        ending = stored.store.recordAttempt(first as LeasedEvent, delivered, new Date(start))
        await sleep(100)
      })
      await ending
      const [second] = await lease()
      expect(second).toMatchObject({ attempts: 1, user_id: id })
      // 300 changes run while earlier events end. The order of changes and ends is random.
      await stored.store.recordAttempt(second as LeasedEvent, delivered, new Date(start))
      await Promise.all([
        (async () => {
          for (let n = 0; n < 300; n += 1) await stored.change(id, [`n${n}`])
        })(),
        (async () => {
          for (let ended = 0; ended < 300; ) {
            for (const event of await lease()) {
              await stored.store.recordAttempt(event, delivered, new Date(start))
              expect(JSON.parse(event.body).type).toBe(`n${ended}`)
              ended += 1
            }
          }
        })(),
      ])
    } finally {
      await database.close()
    }
  })

  it('is found within 200 ms among 100,000 other events', async () => {
    const database = await postgresDatabase()
    try {
      const insert = (sql: string) => database.transaction(tx => tx.query(sql), { timeoutMs: 20_000 })
      // Nearly all events belong to one user. 1,000 other events are due much later.
      await insert(
        `insert into events (user_id, type, body, created_at, due_at)
         select case when n > 1000 then 1 else n end, 'a', '{}', now(),
                case when n <= 1000 then now() + interval '1 day' end
           from generate_series(1, 100000) n`,
      )
      const stored = eventsIn(database, Date.now)
      await database.query(
        `insert into events (user_id, type, body, created_at, due_at) values (2000, 'b', '{}', now(), now())`,
      )
      const begun = performance.now()
      const now = new Date(Date.now() + 1_000)
      const leased = await stored.store.lease(10, now, new Date(now.getTime() + leaseMs))
      expect(leased).toMatchObject([{ user_id: 2000 }])
      await stored.store.recordAttempt(leased[0] as LeasedEvent, delivered, now)
      expect(performance.now() - begun).toBeLessThan(200)
    } finally {
      await database.close()
    }
  })
})
