// Tests that rate limits in memory and in Redis are exact for simultaneous uses, and still apply while Redis is down.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { createMemoryRateLimiter } from '../../src/storage/memory-rate-limiter.ts'
import {
  createRateLimiter,
  createRateLimiters,
  type Limit,
  type RateLimiter,
} from '../../src/storage/rate-limiter.ts'
import { openRedis } from '../../src/storage/redis/redis.ts'
import type { ScriptRunner } from '../../src/storage/redis/redis-scripts.ts'
import { type Server, startRedis } from '../support/servers.ts'
import { describeWithRedisBinary, describeWithServices, emptyRedisUrl } from '../support/services.ts'

const MINUTE = 60_000

/** Returns the used heap in bytes after a garbage collection. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

function limits(create: (limit: Limit | null, name?: string) => RateLimiter): void {
  let keys = 0
  const newKey = () => {
    keys += 1
    return `192.0.2.${keys}`
  }

  it('uses up to the limit are allowed, and the result contains the remaining uses and the time until the reset', async () => {
    const limiter = create({ limit: 2, windowMs: MINUTE })
    const key = newKey()
    const answers = [await limiter.consume(key), await limiter.consume(key), await limiter.consume(key)]
    expect(answers.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
    ])
    for (const { limit, windowMs, resetSeconds } of answers) {
      expect([limit, windowMs]).toEqual([2, MINUTE])
      expect(resetSeconds).toBeGreaterThan(50)
      expect(resetSeconds).toBeLessThanOrEqual(60)
    }
  })

  it('exactly as many simultaneous uses are allowed as the limit permits', async () => {
    const key = newKey()
    const replicas = [create({ limit: 7, windowMs: MINUTE })]
    const answers = await Promise.all(Array.from({ length: 100 }, () => replicas[0]?.consume(key)))
    expect(answers.filter(answer => answer?.allowed)).toHaveLength(7)
  })

  it('the uses of each key are counted separately, even if the keys are long', async () => {
    const limiter = create({ limit: 1, windowMs: MINUTE })
    const long = `${'x'.repeat(300)}@example.com`
    expect((await limiter.consume(`${long}a`)).allowed).toBe(true)
    expect((await limiter.consume(`${long}b`)).allowed).toBe(true)
    expect((await limiter.consume(`${long}a`)).allowed).toBe(false)
  })

  it('one more use, but not two, is allowed after the refund of one use', async () => {
    const limiter = create({ limit: 2, windowMs: MINUTE })
    const key = newKey()
    await limiter.consume(key)
    await limiter.consume(key)
    await limiter.refund(key)
    expect((await limiter.consume(key)).allowed).toBe(true)
    expect((await limiter.consume(key)).allowed).toBe(false)
  })

  it('refused uses are not counted, so one refund is enough to allow one more use', async () => {
    const limiter = create({ limit: 1, windowMs: MINUTE })
    const key = newKey()
    await limiter.consume(key)
    for (let turn = 0; turn < 5; turn += 1) expect((await limiter.consume(key)).allowed).toBe(false)
    await limiter.refund(key)
    expect((await limiter.consume(key)).allowed).toBe(true)
  })

  it('no additional use is allowed if more uses are refunded than were counted', async () => {
    const limiter = create({ limit: 1, windowMs: MINUTE })
    const key = newKey()
    await limiter.refund(key)
    await limiter.refund(key)
    expect((await limiter.consume(key)).allowed).toBe(true)
    expect((await limiter.consume(key)).allowed).toBe(false)
  })

  it('every use is allowed if the limit is off', async () => {
    const limiter = create(null)
    const key = newKey()
    for (let turn = 0; turn < 50; turn += 1) expect((await limiter.consume(key)).allowed).toBe(true)
    await limiter.refund(key)
  })
}

describe('the limiter in memory', () => {
  const clock = { time: 1_000_000, now: () => clock.time }
  limits(limit => createRateLimiter('test', limit, { clock }))

  it('stores nothing for a key whose uses were all refunded, so this key does not displace another key', () => {
    const limiter = createMemoryRateLimiter({ limit: 1, windowMs: MINUTE }, clock, 2)
    limiter.consume('one who guessed')
    for (let turn = 0; turn < 10; turn += 1) {
      expect(limiter.consume(`another ${turn}`).allowed).toBe(true)
      limiter.refund(`another ${turn}`)
    }
    expect(limiter.consume('one who guessed').allowed).toBe(false)
  })

  it('does not store the full text of long keys', async () => {
    const limiter = createRateLimiter('test', { limit: 1, windowMs: MINUTE }, { clock })
    const before = heapUsed()
    for (let turn = 0; turn < 1_000; turn += 1) {
      const key = `${turn} `.padEnd(60_000, 'é')
      await limiter.consume(key)
      expect((await limiter.consume(key)).allowed).toBe(false)
    }
    expect(heapUsed() - before).toBeLessThan(20_000_000)
    await limiter.refund(''.padEnd(60_000, 'é'))
  })

  it('starts a new time window exactly when the previous window ends', async () => {
    const limiter = createRateLimiter('test', { limit: 1, windowMs: MINUTE }, { clock })
    await limiter.consume('key')
    clock.time += MINUTE - 1
    expect(await limiter.consume('key')).toMatchObject({ allowed: false, resetSeconds: 1 })
    clock.time += 1
    expect(await limiter.consume('key')).toMatchObject({ allowed: true, resetSeconds: 60 })
  })
})

describeWithServices('the limiter in Redis', () => {
  const clock = { now: () => Date.now() }
  let url: string
  let scriptRunner: ScriptRunner
  let other: ScriptRunner
  let raw: Redis

  beforeAll(async () => {
    url = await emptyRedisUrl()
    scriptRunner = openRedis(url)
    other = openRedis(url)
    raw = new Redis(url)
    await Promise.all([scriptRunner.whenUp(5_000), other.whenUp(5_000)])
  })
  afterAll(async () => {
    raw.disconnect()
    await Promise.all([scriptRunner.close(), other.close()])
  })

  limits((limit, name = 'test') => createRateLimiter(name, limit, { clock, scriptRunner }))

  it('counts the uses on all replicas together', async () => {
    const limit = { limit: 5, windowMs: MINUTE }
    const replicas = [
      createRateLimiter('shared', limit, { clock, scriptRunner }),
      createRateLimiter('shared', limit, { clock, scriptRunner: other }),
    ]
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, turn) => replicas[turn % 2]?.consume('key')),
    )
    expect(answers.filter(answer => answer?.allowed)).toHaveLength(5)
  })

  it('counts limits with different names separately', async () => {
    const limit = { limit: 1, windowMs: MINUTE }
    const all = {
      register: limit,
      login_failures: limit,
      login_failures_per_address: limit,
      refresh: limit,
      bad_keys: limit,
      keys: limit,
      external: limit,
    }
    const limiters = createRateLimiters(all, (name, limit) =>
      createRateLimiter(name, limit, { clock, scriptRunner }),
    )
    for (const limiter of Object.values(limiters)) {
      expect((await limiter.consume('198.51.100.1')).allowed).toBe(true)
      expect((await limiter.consume('198.51.100.1')).allowed).toBe(false)
    }
  })

  it('starts a new time window when the previous window has ended', async () => {
    const limiter = createRateLimiter('brief', { limit: 1, windowMs: 200 }, { clock, scriptRunner })
    expect((await limiter.consume('key')).allowed).toBe(true)
    expect((await limiter.consume('key')).allowed).toBe(false)
    await expect.poll(async () => (await limiter.consume('key')).allowed, { timeout: 5_000 }).toBe(true)
  })

  it('stores only short keys, which have an expiry and the prefix `peage:`', async () => {
    const limiter = createRateLimiter('test', { limit: 9, windowMs: MINUTE }, { clock, scriptRunner })
    await limiter.consume('x'.repeat(10_000))
    await limiter.refund('never taken')
    const keys = await raw.keys('*')
    expect(keys.length).toBeGreaterThan(5)
    for (const key of keys) {
      expect(key).toMatch(/^peage:limit:.{1,100}$/)
      // The result -1 means that the key has no expiry. The result -2 means that the key has expired since the test
      // read the list of keys.
      expect(await raw.pttl(key)).not.toBe(-1)
    }
  })

  it('adds an expiry to a key that has none, so that no client is locked out forever', async () => {
    await raw.set('peage:limit:stuck:key', 5)
    const limiter = createRateLimiter('stuck', { limit: 1, windowMs: MINUTE }, { clock, scriptRunner })
    expect((await limiter.consume('key')).allowed).toBe(false)
    expect(await raw.pttl('peage:limit:stuck:key')).toBeGreaterThan(0)
  })
})

describeWithRedisBinary('the limiter while Redis is down', () => {
  const clock = { time: 1_000_000, now: () => clock.time }
  let server: Server
  let scriptRunner: ScriptRunner

  beforeAll(async () => {
    server = await startRedis(inject('redisBin'))
    scriptRunner = openRedis(server.url)
  })
  beforeEach(async () => {
    if (!(await scriptRunner.ping())) await server.restart()
    await expect.poll(() => scriptRunner.isUp()).toBe(true)
  })
  afterAll(async () => {
    await scriptRunner.close()
    await server.stop()
  })

  it('still applies limits after Redis is killed', async () => {
    const limiter = createRateLimiter('killed', { limit: 3, windowMs: MINUTE }, { clock, scriptRunner })
    await limiter.consume('key')
    await server.kill()
    const answers = await Promise.all(Array.from({ length: 20 }, () => limiter.consume('key')))
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3)
    await limiter.refund('key')
    expect((await limiter.consume('key')).allowed).toBe(true)
    expect((await limiter.consume('key')).allowed).toBe(false)
  })

  it('still applies limits while Redis hangs, and waits for Redis only once', async () => {
    const limiter = createRateLimiter('hanging', { limit: 3, windowMs: MINUTE }, { clock, scriptRunner })
    await limiter.consume('key')
    server.pause()
    const started = performance.now()
    const answers = [await limiter.consume('key')]
    const first = performance.now() - started
    for (let turn = 0; turn < 20; turn += 1) answers.push(await limiter.consume('key'))
    const rest = performance.now() - started - first
    server.resume()
    // While Redis hangs, the process starts its own count at zero, and allows three uses. Redis would have allowed only
    // two more uses.
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(3)
    expect(first).toBeLessThan(300)
    expect(rest).toBeLessThan(100)
  })
})
