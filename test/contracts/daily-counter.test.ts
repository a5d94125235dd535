// Tests on both databases, with and without Redis, that the daily counter allows exactly as many uses as the limit.

import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import type { Database } from '../../src/storage/database.ts'
import { openPostgres } from '../../src/storage/postgres/postgres.ts'
import { openRedis } from '../../src/storage/redis/redis.ts'
import type { ScriptRunner } from '../../src/storage/redis/redis-scripts.ts'
import { createDailyCounter, type DailyCounter } from '../../src/usage/daily-counter.ts'
import { createUsageHint } from '../../src/usage/usage-hint.ts'
import { createUsageStore, type UsageRecord } from '../../src/usage/usage-store.ts'
import { type Server, startRedis } from '../support/servers.ts'
import { describeWithRedisBinary } from '../support/services.ts'
import { describeOnBothSetups } from '../support/setups.ts'
import { addUser } from '../support/users.ts'

// The day is in the future, because Redis drops keys immediately if their expiry has passed.
const TODAY = '2096-02-28'
const NOON = Date.parse(`${TODAY}T12:00:00Z`)

interface World {
  database: Database
  clock: { time: number; now(): number }
  fallbacks: unknown[]
  counter(limit?: number): DailyCounter
  user(record?: Partial<UsageRecord>): Promise<number>
  record(userId: number): Promise<UsageRecord | undefined>
}

/** Matches the error of a use for which the counter sent no command to Redis, because Redis was already down. */
const notAsked = expect.objectContaining({ message: expect.stringMatching(/^redis is down/) })

function createWorld(database: Database, keyValue: ScriptRunner | undefined): World {
  const clock = { time: NOON, now: () => clock.time }
  const fallbacks: unknown[] = []
  const store = createUsageStore(database)
  return {
    database,
    clock,
    fallbacks,
    counter: (dailyLimit = 1) =>
      createDailyCounter({
        store,
        usageHint: keyValue && createUsageHint(keyValue),
        clock,
        dailyLimit,
        onFallback: reason => fallbacks.push(reason),
      }),
    user: record => addUser(database, record),
    record: store.read,
  }
}

/** Adds the tests whose results must be the same with Redis and without Redis. */
function countsRight(world: () => World): void {
  it('the first use of the day is counted and stored, and the second use is refused if the limit is one', async () => {
    const { counter, user, record } = world()
    const id = await user()
    expect(await counter().use(id)).toEqual({ counted: true, used: 1 })
    expect(await record(id)).toEqual({ daily_usage: 1, last_usage_date: TODAY })
    expect(await counter().use(id)).toEqual({ counted: false, used: 1, reason: 'spent', day: TODAY })
    expect(await record(id)).toEqual({ daily_usage: 1, last_usage_date: TODAY })
  })

  it('the count starts again at zero exactly at the change of the UTC day', async () => {
    const { counter, user, record, clock } = world()
    const id = await user()
    clock.time = Date.parse('2096-02-28T23:59:59.999Z')
    expect((await counter().use(id)).counted).toBe(true)
    expect((await counter().use(id)).counted).toBe(false)
    clock.time += 1
    expect(await counter().use(id)).toEqual({ counted: true, used: 1 })
    expect(await record(id)).toEqual({ daily_usage: 1, last_usage_date: '2096-02-29' })
    expect((await counter().use(id)).counted).toBe(false)
  })

  it('a use is refused and not stored if another replica, whose clock is past midnight, has counted a use', async () => {
    const { counter, user, record } = world()
    const tomorrow = { daily_usage: 1, last_usage_date: '2096-02-29' }
    const id = await user(tomorrow)
    expect(await counter().use(id)).toEqual({ counted: false, used: 1, reason: 'spent', day: TODAY })
    expect(await counter().use(id)).toEqual({ counted: false, used: 1, reason: 'spent', day: TODAY })
    expect(await record(id)).toEqual(tomorrow)
  })

  it.each(['2096-02-27', '2020-01-01', '2096-03-01', '2131-12-31'])(
    'the count starts again at zero if the record has the date %s, which is neither today nor tomorrow',
    async last_usage_date => {
      const { counter, user, record } = world()
      const id = await user({ daily_usage: 7, last_usage_date })
      expect(await counter().use(id)).toEqual({ counted: true, used: 1 })
      expect(await record(id)).toEqual({ daily_usage: 1, last_usage_date: TODAY })
      expect((await counter().use(id)).counted).toBe(false)
    },
  )

  it('three uses are counted and further uses are refused if the limit is three', async () => {
    const { counter, user, record } = world()
    const id = await user()
    const uses = []
    for (let turn = 0; turn < 5; turn += 1) uses.push(await counter(3).use(id))
    expect(uses.map(({ counted, used }) => [counted, used])).toEqual([
      [true, 1],
      [true, 2],
      [true, 3],
      [false, 3],
      [false, 3],
    ])
    expect(await record(id)).toEqual({ daily_usage: 3, last_usage_date: TODAY })
  })

  it('a use is refused if the record is above the limit, for example because the limit was lowered', async () => {
    const { counter, user, record } = world()
    const id = await user({ daily_usage: 5, last_usage_date: TODAY })
    expect(await counter().use(id)).toEqual({ counted: false, used: 5, reason: 'spent', day: TODAY })
    expect(await record(id)).toEqual({ daily_usage: 5, last_usage_date: TODAY })
  })

  it('a use is allowed again after an operator has reset the uses', async () => {
    const { counter, user, database } = world()
    const id = await user()
    await counter().use(id)
    expect((await counter().use(id)).counted).toBe(false)
    await database.query('update users set daily_usage = 0, last_usage_date = null where id = $1', [id])
    expect(await counter().use(id)).toEqual({ counted: true, used: 1 })
    expect((await counter().use(id)).counted).toBe(false)
  })

  it('no use is counted for an unknown user', async () => {
    const { counter } = world()
    expect(await counter().use(999_999_999)).toEqual({
      counted: false,
      used: 0,
      reason: 'no_user',
      day: TODAY,
    })
    expect(await counter().use(999_999_999)).toEqual({
      counted: false,
      used: 0,
      reason: 'no_user',
      day: TODAY,
    })
  })

  it.each([1, 3])('exactly %i of 100 simultaneous uses on two replicas are allowed', async limit => {
    const { counter, user, record } = world()
    const id = await user()
    const replicas = [counter(limit), counter(limit)]
    const uses = await Promise.all(Array.from({ length: 100 }, (_, turn) => replicas[turn % 2]?.use(id)))
    expect(uses.filter(use => use?.counted)).toHaveLength(limit)
    expect(await record(id)).toEqual({ daily_usage: limit, last_usage_date: TODAY })
  })

  it('the uses of each user are counted separately', async () => {
    const { counter, user } = world()
    const ids = await Promise.all([user(), user(), user()])
    expect((await Promise.all(ids.map(id => counter().use(id)))).every(({ counted }) => counted)).toBe(true)
  })
}

describeOnBothSetups('the daily counter without Redis', ({ openDatabase: open }) => {
  let world: World
  beforeAll(async () => {
    world = createWorld(await open(), undefined)
  })
  beforeEach(() => {
    world.clock.time = NOON
  })
  afterAll(() => world.database.close())
  countsRight(() => world)
})

describeOnBothSetups('the daily counter with Redis', ({ openDatabase: open }) => {
  describeWithRedisBinary('in a separate process', () => {
    let server: Server
    let keyValue: ScriptRunner
    let raw: Redis
    let world: World
    beforeAll(async () => {
      server = await startRedis(inject('redisBin'))
      keyValue = openRedis(server.url)
      raw = new Redis(server.url)
      raw.on('error', () => {})
      world = createWorld(await open(), keyValue)
    })
    beforeEach(async () => {
      world.clock.time = NOON
      if (!(await keyValue.ping())) await server.restart()
      await expect.poll(() => keyValue.isUp()).toBe(true)
      world.fallbacks.length = 0
    })
    afterAll(async () => {
      raw.disconnect()
      await keyValue.close()
      await server.stop()
      await world.database.close()
    })
    const keyOf = (id: number, day = TODAY) => `peage:usage:${day}:${id}`

    countsRight(() => world)

    it('uses Redis for every count while Redis is up', async () => {
      const id = await world.user()
      await world.counter().use(id)
      await world.counter().use(id)
      expect(world.fallbacks).toEqual([])
    })

    it('does not update the record of a user who has no remaining uses', async () => {
      const id = await world.user()
      await world.counter().use(id)
      const count = vi.fn()
      const store = { count, read: createUsageStore(world.database).read }
      const counter = createDailyCounter({
        store,
        usageHint: createUsageHint(keyValue),
        clock: world.clock,
        dailyLimit: 1,
        onFallback: () => {},
      })
      expect((await counter.use(id)).counted).toBe(false)
      expect(count).not.toHaveBeenCalled()
    })

    it('reads the record only a few times if it refuses many uses simultaneously', async () => {
      const id = await world.user()
      await world.counter().use(id)
      const query = vi.fn(world.database.query)
      const counter = createDailyCounter({
        store: createUsageStore({ ...world.database, query: query as Database['query'] }),
        usageHint: createUsageHint(keyValue),
        clock: world.clock,
        dailyLimit: 1,
        onFallback: () => {},
      })
      const uses = await Promise.all(Array.from({ length: 50 }, () => counter.use(id)))
      expect(uses.some(({ counted }) => counted)).toBe(false)
      expect(query.mock.calls.length).toBeLessThan(10)
    })

    it('sets the count in Redis to expire 24 hours after the end of the day', async () => {
      const id = await world.user()
      await world.counter().use(id)
      expect(await raw.call('expiretime', keyOf(id))).toBe(Date.parse('2096-03-01T00:00:00Z') / 1000)
      await raw.del(keyOf(id))
      await world.counter().use(id)
      await world.counter().use(id)
      expect(await raw.call('expiretime', keyOf(id))).toBe(Date.parse('2096-03-01T00:00:00Z') / 1000)
    })

    it('still refuses a use above the limit after Redis was emptied, and stores the count in Redis again', async () => {
      const id = await world.user()
      await world.counter().use(id)
      await raw.flushall()
      expect(await world.counter().use(id)).toEqual({ counted: false, used: 1, reason: 'spent', day: TODAY })
      expect(await world.record(id)).toEqual({ daily_usage: 1, last_usage_date: TODAY })
      await raw.flushall()
      const spent = await world.user({ daily_usage: 4, last_usage_date: TODAY })
      expect((await world.counter(4).use(spent)).counted).toBe(false)
      expect(await raw.get(keyOf(spent))).toBe('4')
    })

    it('still refuses the fourth use with a limit of three after Redis was restored from an older copy', async () => {
      const id = await world.user()
      await world.counter(3).use(id)
      const copy = await raw.dumpBuffer(keyOf(id))
      await world.counter(3).use(id)
      await raw.restore(keyOf(id), 0, copy ?? '', 'REPLACE')
      expect(await world.counter(3).use(id)).toEqual({ counted: true, used: 3 })
      await raw.restore(keyOf(id), 0, copy ?? '', 'REPLACE')
      expect(await world.counter(3).use(id)).toEqual({ counted: false, used: 3, reason: 'spent', day: TODAY })
      expect(await raw.get(keyOf(id))).toBe('3')
      expect(await world.record(id)).toEqual({ daily_usage: 3, last_usage_date: TODAY })
    })

    it('if the count in Redis is higher than the recorded count, allows the first use and corrects the count in Redis', async () => {
      const id = await world.user()
      await raw.set(keyOf(id), 99)
      expect(await world.counter(2).use(id)).toEqual({ counted: true, used: 1 })
      expect(await raw.get(keyOf(id))).toBe('1')
      expect(await world.counter(2).use(id)).toEqual({ counted: true, used: 2 })
      expect((await world.counter(2).use(id)).counted).toBe(false)
    })

    it('allows exactly one of many simultaneous uses if the limit is one and the count in Redis is too high', async () => {
      const id = await world.user()
      await raw.set(keyOf(id), 99)
      const replicas = [world.counter(), world.counter()]
      const uses = await Promise.all(Array.from({ length: 100 }, (_, turn) => replicas[turn % 2]?.use(id)))
      expect(uses.filter(use => use?.counted)).toHaveLength(1)
      expect(await world.record(id)).toEqual({ daily_usage: 1, last_usage_date: TODAY })
    })

    it('uses the count in the record if the value in Redis is invalid', async () => {
      const id = await world.user()
      await raw.rpush(keyOf(id), 'not a number')
      expect((await world.counter().use(id)).counted).toBe(true)
      expect((await world.counter().use(id)).counted).toBe(false)
      expect(world.fallbacks).toHaveLength(2)
    })

    it('allows only the first use of each user while Redis is down, and after Redis restarts without data', async () => {
      const [spent, fresh, later] = [await world.user(), await world.user(), await world.user()]
      await world.counter().use(spent)
      await server.kill()
      expect((await world.counter().use(spent)).counted).toBe(false)
      expect((await world.counter().use(fresh)).counted).toBe(true)
      expect(world.fallbacks.length).toBeGreaterThan(0)
      await server.restart()
      await expect.poll(() => keyValue.isUp()).toBe(true)
      expect((await world.counter().use(spent)).counted).toBe(false)
      expect((await world.counter().use(fresh)).counted).toBe(false)
      expect((await world.counter().use(later)).counted).toBe(true)
    })

    it('still counts uses while Redis hangs, and waits for Redis only at the first use', async () => {
      const [spent, fresh] = [await world.user(), await world.user()]
      await world.counter().use(spent)
      server.pause()
      const started = performance.now()
      expect((await world.counter().use(spent)).counted).toBe(false)
      const first = performance.now() - started
      const fallbacksOfFirst = world.fallbacks.splice(0)
      expect((await world.counter().use(fresh)).counted).toBe(true)
      expect((await world.counter().use(fresh)).counted).toBe(false)
      server.resume()
      expect(first).toBeLessThan(400)
      expect(fallbacksOfFirst).not.toContainEqual(notAsked)
      // After the first use, the gateway considers Redis to be down. So it sent no command to Redis for later uses.
      expect(world.fallbacks).toEqual([notAsked, notAsked])
      await expect.poll(() => keyValue.isUp()).toBe(true)
      // Redis may now apply the commands that it received during the pause. These commands must not change the result.
      expect((await world.counter().use(fresh)).counted).toBe(false)
      expect((await world.counter().use(spent)).counted).toBe(false)
    })
  })
})

describe('the daily counter while Postgres is down', () => {
  it('throws an error at every use, and allows no use', async () => {
    const away = openPostgres({ url: 'postgres://127.0.0.1:1/none', maxConnections: 1, onError: () => {} })
    const clock = { now: () => NOON }
    const full = { reserve: async () => ['full' as const], set: async () => {} }
    const store = createUsageStore(away)
    for (const usageHint of [undefined, full]) {
      const counter = createDailyCounter({ store, usageHint, clock, dailyLimit: 1, onFallback: () => {} })
      await expect(counter.use(1)).rejects.toMatchObject({ name: 'StorageError' })
      await expect(counter.use(1)).rejects.toMatchObject({ name: 'StorageError' })
    }
    await away.close()
  })
})

describe('the daily counter while it reads the record', () => {
  it('starts a new read for later uses if the record changes during the current read', async () => {
    const reads: ((record: UsageRecord) => void)[] = []
    const counter = createDailyCounter({
      store: {
        read: () => new Promise(resolve => reads.push(resolve)),
        count: async userIds => userIds.map(() => ({ counted: true, used: 1 })),
      },
      usageHint: { reserve: async userIds => userIds.map(() => 'full'), set: async () => {} },
      clock: { now: () => NOON },
      dailyLimit: 1,
      onFallback: () => {},
    })
    const before = [counter.use(1), counter.use(1)]
    await vi.waitUntil(() => reads.length > 0)
    counter.onChange()
    const after = counter.use(1)
    await vi.waitUntil(() => reads.length > 1)
    reads[1]?.({ daily_usage: 0, last_usage_date: null })
    reads[0]?.({ daily_usage: 1, last_usage_date: TODAY })
    expect(await after).toEqual({ counted: true, used: 1 })
    for (const use of before) expect((await use).counted).toBe(false)
    expect(reads).toHaveLength(2)
  })
})
