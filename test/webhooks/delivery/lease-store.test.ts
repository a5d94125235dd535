// Which due deliveries are leased when many wait: one receiver's long backlog delays no other receiver.

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Database } from '../../../src/storage/database.ts'
import type { LeaseRequest } from '../../../src/webhooks/delivery/lease-store.ts'
import { describeOverSetups } from '../../support/setups.ts'
import { type Stored, secret, storedIn } from './stored.ts'

const crowded = 'crowded.example:443'
const alone = 'zz-alone.example:443'

describeOverSetups('claiming', ({ openDatabase: open }) => {
  let database: Database
  let stored: Stored
  const now = Date.now()
  beforeAll(async () => {
    database = await open()
    stored = storedIn(database, () => now)
  })
  beforeEach(() => stored.empty())
  afterAll(() => database.close())

  /** Creates users in id order, each with a due delivery. */
  async function queue(receivers: readonly string[]): Promise<void> {
    await database.query(
      `with made as (
         insert into users (email, password_hash, plan)
         select n || '@' || md5(random()::text) || '.test', 'x', 'pro' from generate_series(1, $2::integer) n
         returning id
       )
       insert into webhooks (user_id, url, receiver, secret)
       select id, 'https://' || r, r, $3 from (select id, ($1::text[])[row_number() over (order by id)] as r from made) m`,
      [receivers, receivers.length, secret],
    )
    await stored.alert()
  }

  async function claim(asked: Partial<LeaseRequest> = {}): Promise<string[]> {
    const claimed = await stored.deliveries.lease({
      limit: 32,
      perReceiver: 4,
      busyReceivers: new Map(),
      slowReceivers: [],
      slotClass: 'normal',
      now: new Date(now),
      leaseUntil: new Date(now + 25_000),
      ...asked,
    })
    return claimed.map(({ receiver }) => receiver).sort()
  }

  const backlog = (count: number) => Array.from({ length: count }, () => crowded)

  it('takes no more than a receiver’s bound of its backlog, and what waits behind it', async () => {
    await queue([...backlog(300), alone])
    expect(await claim()).toEqual([...backlog(4), alone])
  })

  it('passes a receiver over that has all it may have', async () => {
    await queue([...backlog(300), alone])
    expect(await claim({ busyReceivers: new Map([[crowded, 0]]) })).toEqual([alone])
  })

  it('passes slow receivers over, and has nothing else in their own lane', async () => {
    await queue([...backlog(300), alone])
    expect(await claim({ slowReceivers: [crowded] })).toEqual([alone])
    expect(await claim({ slowReceivers: [crowded], slotClass: 'slow', limit: 128 })).toEqual(backlog(4))
    expect(
      await claim({ slowReceivers: [crowded], slotClass: 'slow', busyReceivers: new Map([[crowded, 0]]) }),
    ).toEqual([])
  })

  it('comes to every receiver in time, however many others wait for their next attempt', async () => {
    const waiting = Array.from({ length: 1_200 }, (_, i) => `dead${i}.example:443`)
    await queue(waiting)
    await database.query(`update webhook_deliveries set due_at = due_at + interval '1 hour'`)
    await database.query(`delete from webhooks`)
    await queue([...backlog(300), alone])
    const asked = { busyReceivers: new Map([[crowded, 0]]) }
    const taken = [await claim(asked), await claim(asked), await claim(asked)]
    expect(taken.flat()).toEqual([alone])
  })

  it('sends what is pending to the webhook that took the place of the old one, within the new receiver’s bound', async () => {
    const user = await stored.receiving('https://old.example/')
    await stored.alert(user)
    await stored.webhook(user, 'https://new.example/')
    expect(await claim({ busyReceivers: new Map([['new.example:443', 0]]) })).toEqual([])
    expect(await claim({ busyReceivers: new Map([['old.example:443', 0]]) })).toEqual(['new.example:443'])
  })

  it('gives each of two that ask at once others', async () => {
    await queue(Array.from({ length: 40 }, (_, i) => `r${i}.example:443`))
    const both = (await Promise.all([claim({ limit: 20 }), claim({ limit: 20 })])).flat()
    expect(new Set(both).size).toBe(both.length)
  })
})
