// Rate limits, counted in memory and in Redis: exact under concurrency, and still there when Redis is not.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it, vi } from 'vitest'
import { createLimiter, createLimiters, type Limit, type Limiter } from '../../src/storage/rate-limiter.ts'
import { openRedis } from '../../src/storage/redis/redis.ts'
import type { KeyValue } from '../../src/storage/redis/redis-scripts.ts'
import { type Server, startRedis } from '../support/servers.ts'
import { describeWithRedis, describeWithRedisBinary, emptyRedisUrl } from '../support/services.ts'

const MINUTE = 60_000

function limits(create: (limit: Limit | null, name?: string) => Limiter): void {
  let keys = 0
  const newKey = () => {
    keys += 1
    return `192.0.2.${keys}`
  }

  it('allows as many as the limit says and then refuses, saying what is left and for how long', async () => {
    const limiter = create({ limit: 2, window: MINUTE })
    const key = newKey()
    const answers = [await limiter.take(key), await limiter.take(key), await limiter.take(key)]
    expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
    ])
    for (const { limit, window, resetSeconds } of answers) {
      expect([limit, window]).toEqual([2, MINUTE])
      expect(resetSeconds).toBeGreaterThan(50)
      expect(resetSeconds).toBeLessThanOrEqual(60)
    }
  })

  it('allows exactly the limit of many at once, over two replicas', async () => {
    const key = newKey()
    const replicas = [create({ limit: 7, window: MINUTE })]
    const answers = await Promise.all(Array.from({ length: 100 }, () => replicas[0]?.take(key)))
    expect(answers.filter(answer => answer?.allowed)).toHaveLength(7)
  })

  it('counts keys apart, whatever their length', async () => {
    const limiter = create({ limit: 1, window: MINUTE })
    const long = `${'x'.repeat(300)}@example.com`
    expect((await limiter.take(`${long}a`)).allowed).toBe(true)
    expect((await limiter.take(`${long}b`)).allowed).toBe(true)
    expect((await limiter.take(`${long}a`)).allowed).toBe(false)
  })

  it('gives back one take, so that one more is allowed and not two', async () => {
    const limiter = create({ limit: 2, window: MINUTE })
    const key = newKey()
    await limiter.take(key)
    await limiter.take(key)
    await limiter.giveBack(key)
    expect((await limiter.take(key)).allowed).toBe(true)
    expect((await limiter.take(key)).allowed).toBe(false)
  })

  it('does not count what it refused, so that giving back what it allowed is enough', async () => {
    const limiter = create({ limit: 1, window: MINUTE })
    const key = newKey()
    await limiter.take(key)
    for (let turn = 0; turn < 5; turn += 1) expect((await limiter.take(key)).allowed).toBe(false)
    await limiter.giveBack(key)
    expect((await limiter.take(key)).allowed).toBe(true)
  })

  it('owes nothing when more is given back than was taken', async () => {
    const limiter = create({ limit: 1, window: MINUTE })
    const key = newKey()
    await limiter.giveBack(key)
    await limiter.giveBack(key)
    expect((await limiter.take(key)).allowed).toBe(true)
    expect((await limiter.take(key)).allowed).toBe(false)
  })

  it('allows everything where the limit is off', async () => {
    const limiter = create(null)
    const key = newKey()
    for (let turn = 0; turn < 50; turn += 1) expect((await limiter.take(key)).allowed).toBe(true)
    await limiter.giveBack(key)
  })
}

describe('limiter in memory', () => {
  const clock = { time: 1_000_000, now: () => clock.time }
  limits(limit => createLimiter('test', limit, { clock }))

  it('opens a new window when the one before has ended, not a millisecond sooner', async () => {
    const limiter = createLimiter('test', { limit: 1, window: MINUTE }, { clock })
    await limiter.take('key')
    clock.time += MINUTE - 1
    expect(await limiter.take('key')).toMatchObject({ allowed: false, resetSeconds: 1 })
    clock.time += 1
    expect(await limiter.take('key')).toMatchObject({ allowed: true, resetSeconds: 60 })
  })
})

describeWithRedis('limiter in Redis', () => {
  const clock = { now: () => Date.now() }
  let url: string
  let keyValue: KeyValue
  let other: KeyValue
  let raw: Redis

  beforeAll(async () => {
    url = await emptyRedisUrl()
    keyValue = openRedis(url)
    other = openRedis(url)
    raw = new Redis(url)
    await Promise.all([keyValue.whenUp(5_000), other.whenUp(5_000)])
  })
  afterAll(async () => {
    raw.disconnect()
    await Promise.all([keyValue.close(), other.close()])
  })

  limits((limit, name = 'test') => createLimiter(name, limit, { clock, keyValue }))

  it('shares a limit between replicas', async () => {
    const limit = { limit: 5, window: MINUTE }
    const replicas = [
      createLimiter('shared', limit, { clock, keyValue }),
      createLimiter('shared', limit, { clock, keyValue: other }),
    ]
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, turn) => replicas[turn % 2]?.take('key')),
    )
    expect(answers.filter(answer => answer?.allowed)).toHaveLength(5)
  })

  it('keeps limits of different names apart', async () => {
    const limit = { limit: 1, window: MINUTE }
    const all = {
      register: limit,
      login_failures: limit,
      login_failures_per_address: limit,
      refresh: limit,
      bad_keys: limit,
    }
    const limiters = createLimiters(all, (name, limit) => createLimiter(name, limit, { clock, keyValue }))
    for (const limiter of Object.values(limiters)) {
      expect((await limiter.take('198.51.100.1')).allowed).toBe(true)
      expect((await limiter.take('198.51.100.1')).allowed).toBe(false)
    }
  })

  it('opens a new window when the one before has ended', async () => {
    const limiter = createLimiter('brief', { limit: 1, window: 200 }, { clock, keyValue })
    expect((await limiter.take('key')).allowed).toBe(true)
    expect((await limiter.take('key')).allowed).toBe(false)
    await vi.waitFor(async () => expect((await limiter.take('key')).allowed).toBe(true), 5_000)
  })

  it('leaves no key without an end or of a length that a client chose, and none outside peage:', async () => {
    const limiter = createLimiter('test', { limit: 9, window: MINUTE }, { clock, keyValue })
    await limiter.take('x'.repeat(10_000))
    await limiter.giveBack('never taken')
    const keys = await raw.keys('*')
    expect(keys.length).toBeGreaterThan(5)
    for (const key of keys) {
      expect(key).toMatch(/^peage:limit:.{1,100}$/)
      expect(await raw.pttl(key)).toBeGreaterThan(-1)
    }
  })

  it('gives a key without an end one, so that nobody is shut out for ever', async () => {
    await raw.set('peage:limit:stuck:key', 5)
    const limiter = createLimiter('stuck', { limit: 1, window: MINUTE }, { clock, keyValue })
    expect((await limiter.take('key')).allowed).toBe(false)
    expect(await raw.pttl('peage:limit:stuck:key')).toBeGreaterThan(0)
  })
})

describeWithRedisBinary('limiter when Redis is away', () => {
  const clock = { time: 1_000_000, now: () => clock.time }
  let server: Server
  let keyValue: KeyValue

  beforeAll(async () => {
    server = await startRedis(inject('redisBin'))
    keyValue = openRedis(server.url)
  })
  beforeEach(async () => {
    if (!(await keyValue.ping())) await server.restart()
    await vi.waitFor(() => expect(keyValue.isUp).toBe(true), 10_000)
  })
  afterAll(async () => {
    await keyValue.close()
    await server.stop()
  })

  it('goes on limiting when Redis is killed', async () => {
    const limiter = createLimiter('killed', { limit: 3, window: MINUTE }, { clock, keyValue })
    await limiter.take('key')
    await server.kill()
    const answers = await Promise.all(Array.from({ length: 20 }, () => limiter.take('key')))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3)
    await limiter.giveBack('key')
    expect((await limiter.take('key')).allowed).toBe(true)
    expect((await limiter.take('key')).allowed).toBe(false)
  })

  it('goes on limiting when Redis hangs, waiting for it once and not each time', async () => {
    const limiter = createLimiter('hanging', { limit: 3, window: MINUTE }, { clock, keyValue })
    await limiter.take('key')
    server.pause()
    const started = performance.now()
    const answers = [await limiter.take('key')]
    const first = performance.now() - started
    for (let turn = 0; turn < 20; turn += 1) answers.push(await limiter.take('key'))
    const rest = performance.now() - started - first
    server.resume()
    // Redis, where one is counted, would let two through.
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3)
    expect(first).toBeLessThan(300)
    expect(rest).toBeLessThan(100)
  })
})
