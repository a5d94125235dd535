// Tests the stores of alerts, deliveries and webhooks on both databases.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { createUserStore } from '../../src/users/user-store.ts'
import { createAlertStore } from '../../src/webhooks/alerts/alert-store.ts'
import { createDeliveryStore } from '../../src/webhooks/delivery/delivery-store.ts'
import type { LeasedDelivery, LeaseRequest } from '../../src/webhooks/delivery/lease-store.ts'
import { postgresDatabase } from '../support/databases.ts'
import { builtInPlans } from '../support/plans.ts'
import { describeWithServices } from '../support/services.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { type Stored, storedIn, usualLease } from '../webhooks/delivery/stored.ts'

const start = Date.parse('2026-02-03T04:05:06.789Z')
const lease = 25_000
const delivered = { responseStatus: 204, error: null, result: 'delivered' } as const
const gone = { responseStatus: 410, error: null, result: 'failed' } as const

describeOnBothSetups('deliveries', ({ openDatabase: open }) => {
  let database: Database
  let stored: Stored
  let time: number
  beforeAll(async () => {
    database = await open()
    stored = storedIn(database, () => time)
  })
  beforeEach(async () => {
    time = start
    await stored.empty()
  })
  afterAll(() => database.close())

  const claim = (changed: Partial<LeaseRequest> = {}) =>
    stored.deliveries.lease(usualLease(time, lease, changed))
  const retried = (ms: number) =>
    ({ responseStatus: 500, error: null, result: { retryAt: new Date(time + ms) } }) as const
  const only = (claimed: LeasedDelivery[]) => {
    expect(claimed).toHaveLength(1)
    return claimed[0] as LeasedDelivery
  }

  describe('an alert', () => {
    it('to one user creates one delivery, which is due immediately', async () => {
      const id = await stored.receiving('https://one.test:8443/hook')
      await stored.receiving('https://other.test/')
      expect(await stored.alert(id, 'done', { a: 'é' })).toBe(1)
      expect(await claim()).toEqual([
        {
          id: expect.any(Number),
          alert_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          user_id: id,
          attempts: 1,
          body: '{"type":"done","timestamp":"2026-02-03T04:05:06.789Z","data":{"a":"é"}}',
          url: 'https://one.test:8443/hook',
          receiver: 'one.test:8443',
          secret: expect.stringMatching(/^whsec_/),
          secret_before: null,
          registration: expect.any(Number),
          is_last: false,
        },
      ])
    })

    it('to all users reaches only active pro users with a webhook', async () => {
      const wanted = [await stored.receiving('https://a.test/'), await stored.receiving('https://b.test/')]
      await stored.user('pro')
      for (const [plan, isActive] of [
        ['free', 1],
        ['premium', 1],
        ['pro', 0],
      ] as const) {
        const id = await stored.receiving('https://c.test/')
        await createUserStore(database).update(id, { plan, is_active: isActive })
      }
      expect(await stored.alert()).toBe(2)
      expect((await claim()).map(({ user_id }) => user_id).sort()).toEqual(wanted.sort())
    })

    it.each(['without a webhook', 'inactive', 'not pro'])(
      'to a user who is %s creates no delivery and is not stored',
      async how => {
        const id = await (how === 'without a webhook' ? stored.user() : stored.receiving('https://a.test/'))
        if (how === 'inactive') await createUserStore(database).update(id, { is_active: 0 })
        if (how === 'not pro') await createUserStore(database).update(id, { plan: 'premium' })
        expect(await stored.alert(id)).toBe(0)
        expect(await stored.rows()).toEqual([])
        expect(await database.query('select 1 from alerts')).toEqual([])
      },
    )

    it('to an unknown user is refused with user_unknown', async () => {
      expect(await stored.alert(9007199254740991)).toBe('user_unknown')
      expect(await stored.alert(0)).toBe('user_unknown')
      expect(await stored.alert()).toBe(0)
    })

    it('to all users needs only one statement, whatever the number of users', async () => {
      await database.query(
        `insert into users (email, password_hash, plan) select 'all' || n || '@example.com', 'x', 'pro' from generate_series(1, 1000) n`,
      )
      await database.query(
        `insert into webhooks (user_id, url, receiver, secret) select id, 'https://a.test/', 'a.test:443', 'whsec_x' from users`,
      )
      let statements = 0
      const counting: Database = {
        ...database,
        transaction: (work, options) =>
          database.transaction(
            tx =>
              work({
                query(sql, values) {
                  statements += 1
                  return tx.query(sql, values)
                },
              }),
            options,
          ),
      }
      const alert = { id: '7b0f5a3e-2f9e-4c43-9c0c-0a4a4a8f0001', type: 'x', body: '{}' }
      expect(
        await createAlertStore(counting, () => builtInPlans).queue(alert, undefined, new Date(time)),
      ).toBe(1000)
      expect(statements).toBe(1)
      expect(await database.query('select id from alerts')).toHaveLength(1)
    })
  })

  describe('a lease', () => {
    it('takes only due deliveries, in the order in which they became due', async () => {
      const ids: number[] = []
      for (const at of [3_000, 1_000, 2_000, 9_000]) {
        time = start + at
        const id = await stored.receiving(`https://r${at}.test/`)
        await stored.alert(id)
        ids.push(id)
      }
      time = start + 3_000
      const taken = await claim({ limit: 2 })
      expect(taken.map(({ user_id }) => user_id).sort()).toEqual([ids[1], ids[2]].sort())
      expect(only(await claim()).user_id).toBe(ids[0])
      expect(await claim()).toEqual([])
      time = start + 9_000
      expect(only(await claim()).user_id).toBe(ids[3])
    })

    it('gives each of 200 deliveries to only one of four concurrent stores', async () => {
      for (let i = 0; i < 200; i += 1) await stored.receiving(`https://r${i}.test/`)
      await stored.alert()
      // Each of the four stores represents the store of a different replica.
      const stores = Array.from({ length: 4 }, () => createDeliveryStore(database, () => builtInPlans))
      const taken: LeasedDelivery[] = []
      await Promise.all(
        stores.map(async store => {
          for (let misses = 0; misses < 3; ) {
            const some = await store.lease(usualLease(time, lease, { limit: 8 }))
            taken.push(...some)
            misses = some.length === 0 ? misses + 1 : 0
          }
        }),
      )
      expect(taken).toHaveLength(200)
      expect(new Set(taken.map(({ id }) => id)).size).toBe(200)
      expect(taken.every(({ attempts }) => attempts === 1)).toBe(true)
    })

    it('is exclusive until it expires, and the next lease of the delivery counts as the next attempt', async () => {
      await stored.receiving('https://a.test/')
      await stored.alert()
      const first = only(await claim())
      time += lease - 1
      expect(await claim()).toEqual([])
      time += 1
      const second = only(await claim())
      expect([first.attempts, second.attempts]).toEqual([1, 2])
      expect(second.id).toBe(first.id)
    })

    it('takes at most four deliveries to one receiver, and fewer if deliveries to this receiver are already running', async () => {
      for (let i = 0; i < 10; i += 1) await stored.receiving('https://same.test:444/')
      const other = await stored.receiving('https://same.test/')
      await stored.alert()
      const taken = await claim()
      expect(taken.map(({ receiver }) => receiver).sort()).toEqual([
        'same.test:443',
        ...Array(4).fill('same.test:444'),
      ])
      expect(taken.some(({ user_id }) => user_id === other)).toBe(true)
      expect(await claim({ busyReceivers: new Map([['same.test:444', 0]]) })).toEqual([])
      expect(await claim({ busyReceivers: new Map([['same.test:444', 1]]) })).toHaveLength(1)
      expect(await claim({ busyReceivers: new Map([['other.test:443', 0]]) })).toHaveLength(4)
    })

    it('includes a second receiver within two calls, even if the first receiver has many older deliveries', async () => {
      const many = await stored.receiving('https://many.test/')
      for (let i = 0; i < 200; i += 1) await stored.alert(many)
      time += 1_000
      const late = await stored.receiving('https://late.test/')
      await stored.alert(late)
      const taken = [...(await claim()), ...(await claim({ busyReceivers: new Map([['many.test:443', 0]]) }))]
      expect(taken.map(({ user_id }) => user_id)).toEqual([many, many, many, many, late])
    })

    it('finds a due delivery within three calls, even if deliveries to 1,200 receivers are not yet due', async () => {
      await database.query(
        `with made as (
           insert into users (email, password_hash, plan)
           select 'waiting' || n || '@example.com', 'x', 'pro' from generate_series(1, 1200) n returning id
         )
         insert into webhooks (user_id, url, receiver, secret)
         select id, 'https://dead.test', 'dead' || id || '.test:443', 'whsec_x' from made`,
      )
      await stored.alert()
      await database.query(`update webhook_deliveries set due_at = due_at + interval '1 hour'`)
      const many = await stored.receiving('https://many.test/')
      for (let i = 0; i < 300; i += 1) await stored.alert(many)
      const late = await stored.receiving('https://late.test/')
      await stored.alert(late)
      const busyReceivers = new Map([['many.test:443', 0]])
      const taken: LeasedDelivery[] = []
      for (let turn = 0; turn < 3; turn += 1) taken.push(...(await claim({ busyReceivers })))
      expect(only(taken).user_id).toBe(late)
    })

    it('applies the limit of the current receiver of a user, even if the delivery was stored for an earlier receiver', async () => {
      const id = await stored.receiving('https://old.test/')
      await stored.alert(id)
      await stored.webhook(id, 'https://new.test/')
      expect(await claim({ busyReceivers: new Map([['new.test:443', 0]]) })).toEqual([])
      const taken = await claim({ busyReceivers: new Map([['old.test:443', 0]]) })
      expect(only(taken).receiver).toBe('new.test:443')
    })

    it('skips deliveries to slow receivers in the class `normal`, and takes only these deliveries in the class `slow`', async () => {
      const [slow, quick] = [
        await stored.receiving('https://slow.test/'),
        await stored.receiving('https://quick.test/'),
      ]
      await stored.alert()
      const known = { slowReceivers: ['slow.test:443', 'never.test:443'] }
      expect(only(await claim(known)).user_id).toBe(quick)
      expect(await claim(known)).toEqual([])
      const busyReceivers = new Map([['slow.test:443', 0]])
      expect(await claim({ ...known, busyReceivers, slotClass: 'slow' })).toEqual([])
      expect(only(await claim({ ...known, slotClass: 'slow' })).user_id).toBe(slow)
      expect(await claim({ ...known, slotClass: 'slow' })).toEqual([])
    })

    it.each(['normal', 'slow'] as const)(
      'respects the total limit and the limit per receiver in the class `%s`',
      async slotClass => {
        for (const name of ['a', 'b', 'c']) {
          for (let i = 0; i < 6; i += 1) await stored.receiving(`https://${name}.test/`)
        }
        await stored.alert()
        const slowReceivers = slotClass === 'slow' ? ['a.test:443', 'b.test:443', 'c.test:443'] : []
        expect(await claim({ slotClass, slowReceivers, limit: 3 })).toHaveLength(3)
        const rest = await claim({ slotClass, slowReceivers, limit: 100, perReceiver: 2 })
        expect(rest).toHaveLength(6)
        expect(new Set(rest.map(({ receiver }) => receiver)).size).toBe(3)
      },
    )

    it.each(['not pro', 'inactive', 'without a webhook'])(
      'drops the deliveries of a user who is now %s',
      async how => {
        const ids = [await stored.receiving('https://a.test/'), await stored.receiving('https://b.test/')]
        await stored.alert()
        const [id = 0, other] = ids
        const users = createUserStore(database)
        if (how === 'not pro') await users.update(id, { plan: 'free' })
        if (how === 'inactive') await users.update(id, { is_active: 0 })
        // Deletes only the webhook, not its deliveries. The same state can result if an alert to all users is stored
        // while the webhook is removed.
        if (how === 'without a webhook') await database.query('delete from webhooks where user_id = $1', [id])
        expect(only(await claim()).user_id).toBe(other)
        expect(await stored.rows(id)).toMatchObject([
          { status: 'dropped', attempts: 0, finished_at: new Date(time) },
        ])
      },
    )

    it('drops the deliveries of a user who no longer has the plan `pro`, also in the class `slow`', async () => {
      const id = await stored.receiving('https://slow.test/')
      await stored.alert()
      await createUserStore(database).update(id, { plan: 'free' })
      expect(await claim({ slowReceivers: ['slow.test:443'], slotClass: 'slow' })).toEqual([])
      expect(await stored.rows(id)).toMatchObject([{ status: 'dropped' }])
    })
  })

  describe('the result of an attempt', () => {
    it('is stored with its time', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert()
      await stored.deliveries.recordAttempt(only(await claim()), delivered, new Date(time + 70))
      expect(await stored.rows(id)).toMatchObject([
        {
          status: 'delivered',
          attempts: 1,
          response_status: 204,
          error: null,
          finished_at: new Date(time + 70),
        },
      ])
      time += 10 * lease
      expect(await claim()).toEqual([])
    })

    it('can be a retry, and the delivery is not due before the time of the retry', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert()
      await stored.deliveries.recordAttempt(only(await claim()), retried(5_000), new Date(time))
      expect(await stored.rows(id)).toMatchObject([
        { status: 'pending', attempts: 1, response_status: 500, finished_at: null },
      ])
      time += 4_999
      expect(await claim()).toEqual([])
      time += 1
      expect(only(await claim()).attempts).toBe(2)
    })

    it('is ignored if the lease had expired and the delivery was leased again', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert()
      const late = only(await claim())
      time += lease
      const current = only(await claim())
      const before = await stored.rows(id)
      await stored.deliveries.recordAttempt(late, delivered, new Date(time))
      await stored.deliveries.recordAttempt(late, retried(1), new Date(time))
      await stored.deliveries.release(late, new Date(time))
      expect(await stored.rows(id)).toEqual(before)
      await stored.deliveries.recordAttempt(current, delivered, new Date(time))
      await stored.deliveries.recordAttempt(current, retried(1), new Date(time))
      expect(await stored.rows(id)).toMatchObject([{ status: 'delivered', attempts: 2 }])
    })

    it('can be a release of the lease, after which the delivery is due again and the attempt does not count', async () => {
      await stored.receiving('https://a.test/')
      await stored.alert()
      const taken = only(await claim())
      await stored.deliveries.release(taken, new Date(time))
      const again = only(await claim())
      expect([again.id, again.attempts]).toEqual([taken.id, 1])
    })
  })

  describe('a webhook', () => {
    it('loses its pending and leased deliveries when it is removed, but its finished deliveries stay in the log', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert(id)
      await stored.deliveries.recordAttempt(only(await claim()), delivered, new Date(time))
      await stored.alert()
      await stored.alert(id)
      const [taken] = await claim({ limit: 1 })
      const other = await stored.receiving('https://b.test/')
      await stored.alert(other)
      await stored.webhooks.remove(id, new Date(time + 5))
      const left = [{ status: 'delivered' }, { status: 'dropped' }, { status: 'dropped' }]
      expect(await stored.rows(id)).toMatchObject(left)
      expect((await stored.rows(id))[1]?.finished_at).toEqual(new Date(time + 5))
      await stored.deliveries.recordAttempt(taken as LeasedDelivery, delivered, new Date(time))
      expect(await stored.rows(id)).toMatchObject(left)
      expect(await stored.rows(other)).toMatchObject([{ status: 'pending' }])
      await stored.webhooks.remove(id, new Date(time))
    })

    it('has no deliveries left if its user is deleted while an alert to all users is being stored', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert()
      const [row] = await stored.rows(id)
      await createUserStore(database).delete(id)
      await database.query(
        `insert into webhook_deliveries (alert_id, user_id, receiver, due_at, created_at)
         select id, $1, 'a.test:443', $2, $2 from alerts`,
        [id, row?.due_at],
      )
      expect(await claim()).toEqual([])
      expect(await stored.rows(id)).toEqual([])
    })

    it('is removed by a 410 response, unless the delivery was leased before the webhook was registered', async () => {
      const id = await stored.receiving('https://old.test/')
      await stored.alert()
      const taken = only(await claim())
      await stored.webhook(id, 'https://new.test/')
      await stored.alert(id)
      await stored.deliveries.recordLast(taken, gone, new Date(time))
      const left = only(await claim())
      expect(left).toMatchObject({ url: 'https://new.test/', user_id: id })
      expect(left.registration).not.toBe(taken.registration)
      await stored.alert(id)
      await stored.deliveries.recordLast(left, gone, new Date(time))
      expect(await database.query('select 1 from webhooks where user_id = $1', [id])).toEqual([])
      expect((await stored.rows(id)).map(({ status }) => status)).toEqual(['failed', 'failed', 'dropped'])
    })

    it('is removed in the transaction that stores the 410 response to a delivery', async () => {
      const id = await stored.receiving('https://a.test/')
      await stored.alert(id)
      const taken = only(await claim())
      await database.query(
        `create function keep() returns trigger language plpgsql as $$ begin raise 'kept'; end $$`,
      )
      await database.query('create trigger keep before delete on webhooks execute function keep()')
      await expect(stored.deliveries.recordLast(taken, gone, new Date(time))).rejects.toThrow('P0001')
      await database.query('drop function keep cascade')
      expect(await stored.rows(id)).toMatchObject([{ status: 'pending' }])
      await stored.deliveries.recordLast(taken, gone, new Date(time))
      expect(await stored.rows(id)).toMatchObject([{ status: 'failed', response_status: 410 }])
      expect(await database.query('select 1 from webhooks where user_id = $1', [id])).toEqual([])
    })

    it('receives the pending deliveries of the webhook that it replaces', async () => {
      const id = await stored.receiving('https://old.test/')
      await stored.alert()
      await stored.deliveries.recordAttempt(only(await claim()), retried(5_000), new Date(time))
      expect(await stored.webhook(id, 'https://new.test:8443/')).toEqual(new Date(time))
      time += 5_000
      expect(only(await claim())).toMatchObject({
        url: 'https://new.test:8443/',
        receiver: 'new.test:8443',
        attempts: 2,
      })
      expect(await database.query('select 1 from webhooks')).toHaveLength(1)
    })

    it('cannot be registered or changed for an unknown or inactive user', async () => {
      expect(await stored.webhook(9007199254740991, 'https://a.test/')).toBe('user_gone')
      const id = await stored.receiving('https://a.test/')
      await createUserStore(database).update(id, { is_active: 0 })
      expect(await stored.webhook(id, 'https://b.test/')).toBe('user_gone')
      expect(await database.query('select url from webhooks')).toEqual([{ url: 'https://a.test/' }])
    })

    it('is deleted together with its user and its deliveries', async () => {
      const [id, other] = [
        await stored.receiving('https://a.test/'),
        await stored.receiving('https://b.test/'),
      ]
      await stored.alert()
      expect(await createUserStore(database).delete(id)).toBe(true)
      expect((await stored.rows()).map(({ user_id }) => user_id)).toEqual([other])
      expect(await database.query('select user_id from webhooks')).toEqual([{ user_id: other }])
    })
  })

  describe('a replaced secret', () => {
    const url = 'https://a.test/hook'
    const day = 86_400_000

    /** Returns the secrets that sign a new delivery: the current secret, and the replaced secret or null. */
    async function signing(id: number): Promise<(string | null)[]> {
      await stored.alert(id)
      const one = only(await claim())
      await stored.deliveries.recordAttempt(one, delivered, new Date(time))
      return [one.secret, one.secret_before]
    }
    const inRow = (id: number) =>
      database.query('select secret_before, secret_before_until from webhooks where user_id = $1', [id])
    const forgotten = [{ secret_before: null, secret_before_until: null }]

    it('signs deliveries together with the new secret for 24 hours if the URL stays the same', async () => {
      const id = await stored.user()
      await stored.webhook(id, url, 'whsec_1')
      expect(await signing(id)).toEqual(['whsec_1', null])
      time += 5
      await stored.webhook(id, url, 'whsec_2')
      expect(await signing(id)).toEqual(['whsec_2', 'whsec_1'])
      time += day - 1
      expect(await signing(id)).toEqual(['whsec_2', 'whsec_1'])
      time += 1
      expect(await signing(id)).toEqual(['whsec_2', null])
    })

    it('no longer signs deliveries after the URL has changed, even if the old URL is registered again', async () => {
      const id = await stored.user()
      await stored.webhook(id, url, 'whsec_1')
      await stored.webhook(id, url, 'whsec_2')
      await stored.webhook(id, `${url}?`, 'whsec_3')
      expect(await signing(id)).toEqual(['whsec_3', null])
      expect(await inRow(id)).toEqual(forgotten)
      await stored.webhook(id, url, 'whsec_4')
      expect(await signing(id)).toEqual(['whsec_4', null])
    })

    it('signs deliveries for 24 hours, even if it was the current secret for less than 24 hours', async () => {
      const id = await stored.user()
      await stored.webhook(id, url, 'whsec_1')
      await stored.webhook(id, url, 'whsec_2')
      time += day - 1
      await stored.webhook(id, url, 'whsec_3')
      expect(await signing(id)).toEqual(['whsec_3', 'whsec_2'])
      time += day - 1
      expect(await signing(id)).toEqual(['whsec_3', 'whsec_2'])
    })

    it.each(['removed by its user', 'removed by a 410 response'])(
      'is deleted together with its webhook if the webhook is %s',
      async how => {
        const id = await stored.user()
        await stored.webhook(id, url, 'whsec_1')
        await stored.webhook(id, url, 'whsec_2')
        await stored.alert(id)
        const taken = only(await claim())
        if (how === 'removed by its user') await stored.webhooks.remove(id, new Date(time))
        else await stored.deliveries.recordLast(taken, gone, new Date(time))
        await stored.webhook(id, url, 'whsec_3')
        expect(await signing(id)).toEqual(['whsec_3', null])
      },
    )

    it('comes from one of 20 simultaneous registrations, and differs from the current secret', async () => {
      const id = await stored.user()
      const secrets = Array.from({ length: 20 }, (_, i) => `whsec_${i}`)
      await Promise.all(secrets.map(each => stored.webhook(id, url, each)))
      expect(await database.query('select 1 from webhooks where user_id = $1', [id])).toHaveLength(1)
      const [current, before] = await signing(id)
      expect(secrets).toContain(current)
      expect(secrets).toContain(before)
      expect(before).not.toBe(current)
    })

    it('does not sign deliveries after a gateway of the previous release registers a webhook without deleting this secret', async () => {
      const id = await stored.user()
      await stored.webhook(id, url, 'whsec_1')
      await stored.webhook(id, url, 'whsec_2')
      time += 1
      // The previous release registers a webhook with this statement.
      await database.query(
        `insert into webhooks (user_id, url, receiver, secret, created_at)
         select id, $2, $3, $4, $5::timestamptz from users where id = $1 and is_active = 1
         on conflict (user_id) do update
            set registration = default, url = excluded.url, receiver = excluded.receiver,
                secret = excluded.secret, created_at = excluded.created_at`,
        [id, 'https://b.test/', 'b.test:443', 'whsec_3', new Date(time)],
      )
      expect(await signing(id)).toEqual(['whsec_3', null])
      await stored.webhook(id, 'https://b.test/', 'whsec_4')
      expect(await signing(id)).toEqual(['whsec_4', 'whsec_3'])
    })

    it('is deleted 24 hours after it was replaced, in batches', async () => {
      const ids: number[] = []
      for (let i = 0; i < 3; i += 1) {
        const id = await stored.user()
        await stored.webhook(id, url, 'whsec_1')
        await stored.webhook(id, url, 'whsec_2')
        ids.push(id)
      }
      const [first = 0] = ids
      const forget = (limit: number) => stored.webhooks.forgetExpiredSecrets(new Date(time), limit)
      time += 1
      await stored.webhook(first, url, 'whsec_3')
      time = start + day - 1
      expect(await forget(10)).toBe(0)
      time += 1
      expect([await forget(1), await forget(10), await forget(10)]).toEqual([1, 1, 0])
      for (const id of ids.slice(1)) expect(await inRow(id)).toEqual(forgotten)
      expect(await signing(first)).toEqual(['whsec_3', 'whsec_2'])
      time += 1
      expect(await forget(10)).toBe(1)
      expect(await inRow(first)).toEqual(forgotten)
    })
  })

  describe('the log of deliveries', () => {
    it('shows the newest deliveries first, and supports a cursor and filters by user and status', async () => {
      const [a, b] = [await stored.receiving('https://a.test/'), await stored.receiving('https://b.test/')]
      await stored.alert(a, 'first')
      await stored.deliveries.recordAttempt(only(await claim()), delivered, new Date(time + 9))
      time += 1_000
      await stored.alert(b, 'second')
      await stored.alert(a, 'third')
      const list = (filter = {}) => stored.deliveries.list({ limit: 10, ...filter })
      const types = async (filter = {}) => (await list(filter)).map(({ type }) => type)
      expect(await types()).toEqual(['third', 'second', 'first'])
      expect(await types({ limit: 2 })).toEqual(['third', 'second'])
      expect(await types({ userId: a })).toEqual(['third', 'first'])
      expect(await types({ status: 'pending' })).toEqual(['third', 'second'])
      expect(await types({ userId: a, status: 'delivered' })).toEqual(['first'])
      expect(await types({ status: 'failed' })).toEqual([])
      const [newest] = await list()
      expect(await types({ before: newest?.id })).toEqual(['second', 'first'])
      expect((await list())[2]).toEqual({
        id: expect.any(Number),
        alert_id: expect.any(String),
        user_id: a,
        type: 'first',
        status: 'delivered',
        attempts: 1,
        response_status: 204,
        error: null,
        created_at: new Date(start),
        next_attempt_at: null,
        finished_at: new Date(start + 9),
      })
      expect(newest).toMatchObject({ status: 'pending', next_attempt_at: new Date(time), finished_at: null })
    })

    it('is cleared of old finished deliveries in batches, even if older deliveries are still pending', async () => {
      const pending = await stored.receiving('https://a.test/')
      await stored.alert(pending)
      const [leased] = await claim()
      for (const name of ['b', 'c', 'd']) await stored.alert(await stored.receiving(`https://${name}.test/`))
      for (const one of await claim()) await stored.deliveries.recordAttempt(one, delivered, new Date(time))
      const prune = (limit: number, of = time + 1) => stored.deliveries.prune(new Date(of), limit)
      expect(await prune(10, time)).toBe(0)
      expect([await prune(2), await prune(2), await prune(2)]).toEqual([2, 1, 0])
      expect((await stored.rows()).map(({ id }) => id)).toEqual([leased?.id])
    })

    it('is cleared of old alerts, except alerts that still have a delivery', async () => {
      const hour = 3_600_000
      const id = await stored.receiving('https://a.test/')
      await stored.alert(id, 'ended')
      await stored.deliveries.recordAttempt(only(await claim()), delivered, new Date(time))
      time += 2 * hour
      await stored.alert(id, 'pending')
      time += 2 * hour
      const before = new Date(time)
      const types = async () =>
        (await database.query<{ type: string }>('select type from alerts')).map(({ type }) => type).sort()
      expect(await stored.alerts.prune(before, 10)).toBe(0)
      expect(await stored.deliveries.prune(before, 10)).toBe(1)
      expect(await stored.alerts.prune(new Date(start), 10)).toBe(0)
      expect(await stored.alerts.prune(before, 10)).toBe(1)
      expect(await types()).toEqual(['pending'])
      await stored.deliveries.recordAttempt(only(await claim()), delivered, new Date(time))
      expect(await stored.deliveries.prune(before, 10)).toBe(1)
      expect(await stored.alerts.prune(before, 10)).toBe(1)
      expect(await types()).toEqual([])
    })
  })
})

describeWithServices('a backlog of 100,000 deliveries', () => {
  it('does not slow down leases in the class `normal` or `slow`, even before table statistics exist', async () => {
    const database = await postgresDatabase()
    try {
      const insert = (sql: string) => database.transaction(tx => tx.query(sql), { timeoutMs: 20_000 })
      await insert(
        `insert into users (email, password_hash, plan)
         select 'many' || n || '@example.com', 'x', 'pro' from generate_series(1, 100000) n`,
      )
      await insert(
        `insert into webhooks (user_id, url, receiver, secret)
         select id, 'https://r' || id || '.test/', 'r' || id || '.test:443', 'whsec_x' from users`,
      )
      const stored = storedIn(database, () => start)
      expect(await stored.alert()).toBe(100_000)
      for (const slotClass of ['normal', 'slow'] as const) {
        const took: number[] = []
        for (let i = 0; i < 5; i += 1) {
          const begun = performance.now()
          const slowReceivers = Array.from({ length: 30 }, (_, of) => `r${90_000 + of}.test:443`)
          const busyReceivers = new Map([['r1.test:443', 0]])
          const asked = { limit: 5, busyReceivers, slowReceivers, slotClass }
          const some = await stored.deliveries.lease(usualLease(start, lease, asked))
          took.push(performance.now() - begun)
          expect(some).toHaveLength(5)
        }
        // A lease takes about 10 ms. If a lease read the whole backlog, it would take over 300 ms.
        expect(Math.min(...took)).toBeLessThan(100)
      }
    } finally {
      await database.close()
    }
  })
})
