// The embedded storage provides the same parts as Postgres with Redis: a database and rate limiters.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import type { Config } from '../../src/config/sections/schema.ts'
import { createFailureLog } from '../../src/storage/failure-log.ts'
import { openDataFolder, openStorage } from '../../src/storage/open.ts'
import { createRateLimiters } from '../../src/storage/rate-limiter.ts'
import { createPostgresDatabase, dropPostgresDatabase } from '../support/databases.ts'
import { startRedis } from '../support/servers.ts'
import { describeWithRedisBinary, describeWithServices, emptyRedisUrl } from '../support/services.ts'

const unlimited = Number.POSITIVE_INFINITY
const limit = { limit: 1, windowMs: 60_000 }
const rate_limits: Parameters<typeof createRateLimiters>[0] = {
  register: limit,
  login_failures: { limit: 2, windowMs: 60_000 },
  login_failures_per_address: { limit: 3, windowMs: 60_000 },
  refresh: null,
  bad_keys: limit,
  keys: limit,
  external: null,
}

let lines: string[]
const logger = {
  info: (_: object, text: string) => lines.push(text),
  warn: (_: object, text: string) => lines.push(text),
}

beforeEach(() => {
  lines = []
})

async function expectComplete(storage: Config['storage']): Promise<void> {
  const backing = await openStorage(
    { storage },
    { logger, failureLog: () => {}, clock: systemClock },
    openDataFolder,
  )
  try {
    const applied = await backing.migrate()
    expect(applied.length).toBeGreaterThan(0)
    expect(lines).toContain(`migration ${applied[0]} applied`)
    expect(await backing.database.query('select count(*) as n from users')).toEqual([{ n: 0 }])
    const limiters = createRateLimiters(rate_limits, backing.createRateLimiter)
    const taken = await Promise.all(Object.values(limiters).map(limiter => limiter.consume('192.0.2.1')))
    expect(Object.keys(limiters)).toEqual([
      'register',
      'login',
      'login_address',
      'refresh',
      'bad_keys',
      'keys',
      'external',
    ])
    expect(taken.map(({ limit }) => limit)).toEqual([1, 2, 3, unlimited, 1, 1, unlimited])
    expect((await limiters.register.consume('192.0.2.1')).allowed).toBe(false)
  } finally {
    await backing.close()
  }
}

describe('embedded storage', () => {
  let data_dir: string
  beforeEach(() => {
    data_dir = mkdtempSync(join(tmpdir(), 'peage-test-data-'))
  })
  afterEach(() => rmSync(data_dir, { recursive: true }))

  it('has a database and rate limiters without any other service, and releases its folder when closed', async () => {
    await expectComplete({ postgres: '', postgres_listen: '', pool: 2, redis: '', data_dir })
    const again = await openStorage(
      { storage: { postgres: '', postgres_listen: '', pool: 2, redis: '', data_dir } },
      { logger, failureLog: () => {}, clock: systemClock },
      openDataFolder,
    )
    expect(again.database.kind).toBe('embedded')
    expect(again.scriptRunner).toBeUndefined()
    expect(await again.migrate()).toEqual([])
    await again.close()
  })

  it('closes the database and releases its folder if the URL of Redis is invalid', async () => {
    const open = (redis: string) =>
      openStorage(
        { storage: { postgres: '', postgres_listen: '', pool: 2, redis, data_dir } },
        { logger, failureLog: () => {}, clock: systemClock },
        openDataFolder,
      )
    await expect(open('redis://:p%ss@127.0.0.1:1')).rejects.toThrow('URI malformed')
    const again = await open('')
    await again.close()
  })
})

describeWithServices('storage on Postgres and Redis', () => {
  it('has a database and rate limiters, and logs that Redis is up', async () => {
    const postgres = await createPostgresDatabase()
    await expectComplete({
      postgres,
      postgres_listen: '',
      pool: 2,
      redis: await emptyRedisUrl(),
      data_dir: '/nonexistent',
    })
    expect(lines).toContain('redis is up')
    await dropPostgresDatabase(postgres)
  })
})

describeWithRedisBinary('a Redis that cannot be used', () => {
  let data_dir: string
  beforeEach(() => {
    data_dir = mkdtempSync(join(tmpdir(), 'peage-test-data-'))
  })
  afterEach(() => rmSync(data_dir, { recursive: true }))

  it('counts as down if it refuses scripts; a log line reports at once, and then every minute, that rate limits are counted in memory', async () => {
    const server = await startRedis(inject('redisBin'))
    const raw = new Redis(server.url)
    await raw.acl('SETUSER', 'gateway', 'reset', 'on', '>secret', '~*', '+@all', '-eval', '-evalsha')
    const logged: [object, string][] = []
    const clock = { at: 0, now: () => clock.at }
    const logger = { info: () => {}, warn: (...line: [object, string]) => logged.push(line) }
    const redis = `redis://gateway:secret@127.0.0.1:${server.port}`
    const backing = await openStorage(
      { storage: { postgres: '', postgres_listen: '', pool: 2, redis, data_dir } },
      { logger, failureLog: createFailureLog({ logger, clock }), clock },
      openDataFolder,
    )
    expect([backing.gauges.isRedisUp?.(), await backing.checks.redis?.()]).toEqual([false, false])
    const limiter = backing.createRateLimiter('test', { limit: 2, windowMs: 600_000 })
    const lines = () =>
      logged.filter(([, text]) => text === 'rate limits counted in the memory of this process')
    const counted = []
    for (let i = 0; i < 4; i += 1) counted.push((await limiter.consume('key')).allowed)
    expect(counted).toEqual([true, true, false, false])
    const reason = expect.stringContaining('NOPERM')
    expect(lines()).toEqual([[{ reason, failures: 1 }, expect.anything()]])
    clock.at += 60_000
    await limiter.consume('key')
    expect(lines()[1]?.[0]).toEqual({ reason, failures: 4 })
    await backing.close()
    raw.disconnect()
    await server.stop()
  })

  it('makes the start fail if it lacks the configured database; the data folder is then released', async () => {
    const server = await startRedis(inject('redisBin'))
    const open = (redis: string) =>
      openStorage(
        { storage: { postgres: '', postgres_listen: '', pool: 2, redis, data_dir } },
        { logger, failureLog: () => {}, clock: systemClock },
        openDataFolder,
      )
    await expect(open(`${server.url}/99`)).rejects.toThrow('database 99 of storage.redis')
    const backing = await open(`${server.url}/15`)
    expect(backing.gauges.isRedisUp?.()).toBe(true)
    await backing.close()
    await server.stop()
  })
})
