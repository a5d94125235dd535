// On Redis (a single server, Sentinel or a Cluster), a script either gets a fast response or fails fast. The client
// opens a lost connection again.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import type { RedisAddress } from '../../../src/storage/redis/connect-redis.ts'
import { openRedis, type RedisHooks } from '../../../src/storage/redis/redis.ts'
import { defineScript, ScriptError, type ScriptRunner } from '../../../src/storage/redis/redis-scripts.ts'
import { type Server, startRedis } from '../../support/servers.ts'
import { describeWithRedisBinary } from '../../support/services.ts'

const COUNT = defineScript('count', "return redis.call('incrby', KEYS[1], ARGV[1])")
const COUNT_ALL = defineScript(
  'count_all',
  `
local replies = {}
for i, key in ipairs(KEYS) do replies[i] = redis.pcall('incrby', key, ARGV[1]) end
return replies`,
)
const opened: ScriptRunner[] = []

function open(address: RedisAddress, hooks?: RedisHooks): ScriptRunner {
  const keyValue = openRedis(address, hooks)
  opened.push(keyValue)
  return keyValue
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map(keyValue => keyValue.close()))
})

const isUp = (keyValue: ScriptRunner) => expect.poll(() => keyValue.isUp(), { timeout: 15_000 }).toBe(true)

describeWithRedisBinary('Redis', () => {
  let server: Server
  beforeAll(async () => {
    server = await startRedis(inject('redisBin'))
  })
  afterAll(() => server.stop())

  it('runs a script even if the server has removed it from its script cache', async () => {
    const keyValue = open(server.url)
    await isUp(keyValue)
    const raw = new Redis(server.url)
    expect(await keyValue.run(COUNT, 'peage:test:forgotten', [2])).toBe(2)
    await raw.script('FLUSH')
    expect(await keyValue.run(COUNT, 'peage:test:forgotten', [3])).toBe(5)
    expect(await keyValue.ping()).toBe(true)
    raw.disconnect()
  })

  it('runs a script for several keys, even if a key occurs twice or the script is no longer cached', async () => {
    const keyValue = open(server.url)
    await isUp(keyValue)
    const raw = new Redis(server.url)
    await raw.script('FLUSH')
    const keys = ['peage:test:all:1', 'peage:test:all:2', 'peage:test:all:1'] as const
    expect(await keyValue.runForAll(COUNT_ALL, keys, [2])).toEqual([2, 2, 4])
    await raw.set(keys[1], 'no number')
    expect(await keyValue.runForAll(COUNT_ALL, keys, [2])).toEqual([6, expect.any(Error), 8])
    raw.disconnect()
  })

  it('runs concurrent scripts in one batch with separate results, even if they are no longer cached', async () => {
    const keyValue = open(server.url)
    await isUp(keyValue)
    const raw = new Redis(server.url)
    const together = () =>
      Promise.allSettled(
        [1, 'x', 2, 3].map((add, index) => keyValue.run(COUNT, `peage:test:together:${index}`, [add])),
      )
    const outcome = (values: unknown[]) =>
      values.map(value => (value === 'fails' ? { status: 'rejected' } : { status: 'fulfilled', value }))
    expect(await together()).toMatchObject(outcome([1, 'fails', 2, 3]))
    await raw.script('FLUSH')
    expect(await together()).toMatchObject(outcome([2, 'fails', 4, 6]))
    expect((await together())[1]).toMatchObject({ reason: expect.any(ScriptError) })
    raw.disconnect()
  })

  it('stays up after a script fails with a ScriptError', async () => {
    const keyValue = open(server.url)
    await isUp(keyValue)
    await expect(keyValue.run(COUNT, 'peage:test:bad', ['x'])).rejects.toBeInstanceOf(ScriptError)
    expect(keyValue.isUp()).toBe(true)
  })

  it('makes scripts fail at once if the server is down at the start, until the server is up', async () => {
    await server.kill()
    const heard: string[] = []
    const keyValue = open(server.url, { onUp: () => heard.push('up'), onDown: () => heard.push('down') })
    const started = performance.now()
    await expect(keyValue.run(COUNT, 'peage:test', [1])).rejects.toBeInstanceOf(ScriptError)
    // If the scripts waited for a response from Redis, they would take 150 ms.
    expect(performance.now() - started).toBeLessThan(140)
    expect(await keyValue.ping()).toBe(false)
    await keyValue.whenUp(100)
    expect(keyValue.isUp()).toBe(false)
    await server.restart()
    await keyValue.whenUp(10_000)
    expect(await keyValue.run(COUNT, 'peage:test', [1])).toBe(1)
    expect(heard).toEqual(['down', 'up'])
  })

  it('makes the first scripts fail after 150 ms and later scripts fail at once while the server hangs', async () => {
    const heard: string[] = []
    const keyValue = open(server.url, { onUp: () => heard.push('up'), onDown: why => heard.push(why) })
    await isUp(keyValue)
    server.pause()
    const started = performance.now()
    const first = await Promise.allSettled(
      Array.from({ length: 20 }, () => keyValue.run(COUNT, 'peage:test', [1])),
    )
    const waited = performance.now() - started
    expect(first.every(({ status }) => status === 'rejected')).toBe(true)
    expect(waited).toBeGreaterThan(100)
    expect(waited).toBeLessThan(300)
    const later: unknown[] = []
    for (let turn = 0; turn < 20; turn += 1) {
      const refused = keyValue.run(COUNT, 'peage:test', [1]).catch((error: unknown) => error)
      // The script must fail within one turn of the event loop. Unlike a time limit, a turn does not depend on how busy
      // the machine is.
      later.push(await Promise.race([refused, new Promise(resolve => setImmediate(resolve, 'waits'))]))
    }
    server.resume()
    for (const error of later) expect(error).toBeInstanceOf(ScriptError)
    await isUp(keyValue)
    expect(heard).toEqual(['up', 'no response within 150 ms', 'up'])
  })

  it('gets another connection if the server sends no bytes on the first connection', async () => {
    const connections: number[] = []
    const dumb = createServer(() => connections.push(performance.now())).listen(0, '127.0.0.1')
    await once(dumb, 'listening')
    open(`redis://127.0.0.1:${(dumb.address() as { port: number }).port}`)
    await expect.poll(() => connections.length).toBeGreaterThan(1)
    dumb.close()
  })

  it('is looked up by name again when its server becomes a replica, as after a failover', async () => {
    const promoted = await startRedis(inject('redisBin'))
    let target = server.port
    // The relay acts like a DNS name whose address changes. New connections go to the new server. Open connections stay
    // connected to the old server.
    const address = createServer(client => {
      const upstream = connect(target, '127.0.0.1')
      client.on('error', () => {}).on('close', () => upstream.destroy())
      upstream.on('error', () => {}).on('close', () => client.destroy())
      client.pipe(upstream).pipe(client)
    }).listen(0, '127.0.0.1')
    await once(address, 'listening')
    const heard: string[] = []
    const { port } = address.address() as { port: number }
    const keyValue = open(`redis://127.0.0.1:${port}`, { onDown: reason => heard.push(reason) })
    await isUp(keyValue)
    const former = new Redis(server.url)
    await former.replicaof('127.0.0.1', promoted.port)
    target = promoted.port
    await expect(keyValue.run(COUNT, 'peage:test:moved', [6])).rejects.toThrow('READONLY')
    await expect.poll(() => heard).toEqual([expect.stringContaining('READONLY')])
    await isUp(keyValue)
    expect(await keyValue.run(COUNT, 'peage:test:moved', [6])).toBe(6)
    await former.replicaof('NO', 'ONE')
    former.disconnect()
    await keyValue.close()
    address.close()
    await promoted.stop()
  })

  it('counts as down while its server is a replica, and not every refused script causes a reconnect', async () => {
    const raw = new Redis(server.url)
    const connections = async () =>
      Number(/total_connections_received:(\d+)/.exec(await raw.info('stats'))?.[1])
    await raw.replicaof('127.0.0.1', 1)
    const heard: string[] = []
    const keyValue = open(server.url, { onDown: reason => heard.push(reason) })
    await expect.poll(() => heard).toEqual([expect.stringContaining('READONLY')])
    const before = await connections()
    for (let turn = 0; turn < 20; turn += 1) {
      await expect(keyValue.run(COUNT, 'peage:test', [1])).rejects.toThrow('READONLY')
      expect(await keyValue.ping()).toBe(false)
    }
    expect((await connections()) - before).toBeLessThan(5)
    expect(heard).toHaveLength(1)
    await raw.replicaof('NO', 'ONE')
    await isUp(keyValue)
    raw.disconnect()
  })

  describe('a server that responds to PING but refuses scripts', () => {
    let raw: Redis
    let asUser: string
    beforeAll(async () => {
      raw = new Redis(server.url)
      asUser = `redis://gateway:secret@127.0.0.1:${server.port}`
    })
    afterAll(() => raw.disconnect())

    const allow = (...rules: string[]) => raw.acl('SETUSER', 'gateway', 'reset', 'on', '>secret', ...rules)

    it.each([
      ['for a user without EVAL and EVALSHA', '~*', '+@all', '-eval', '-evalsha'],
      ['for a user without scripting commands', '~*', '+@all', '-@scripting'],
      ['for a user without the keys of the gateway', '~other:*', '+@all'],
      ['for a user who may only read keys', '%R~*', '+@all'],
      ['for a user without a command of the scripts', '~*', '+@all', '-pexpire'],
    ])('counts as down %s, until this Redis user gets all permissions', async (_, ...rules) => {
      await allow(...rules)
      const heard: string[] = []
      const keyValue = open(asUser, { onUp: () => heard.push('up'), onDown: why => heard.push(why) })
      await keyValue.whenUp(5_000)
      expect([keyValue.isUp(), await keyValue.ping()]).toEqual([false, false])
      expect(heard).toEqual([expect.stringMatching(/permission|NOPERM|can't run this command/)])
      await allow('~*', '+@all')
      await isUp(keyValue)
      expect(heard).toEqual([expect.anything(), 'up'])
    })

    it('counts as down as soon as a script fails because the user has lost a right', async () => {
      await allow('~*', '+@all')
      const heard: string[] = []
      const keyValue = open(asUser, { onDown: why => heard.push(why) })
      await isUp(keyValue)
      await allow('~*', '+@all', '-eval', '-evalsha')
      await expect(keyValue.run(COUNT, 'peage:test', [1])).rejects.toBeInstanceOf(ScriptError)
      await expect.poll(() => heard).toEqual([expect.stringContaining('NOPERM')])
      expect(keyValue.isUp()).toBe(false)
    })

    it('counts as down if the password is wrong', async () => {
      await allow('~*', '+@all')
      const heard: string[] = []
      const keyValue = open(`redis://gateway:wrong@127.0.0.1:${server.port}`, {
        onDown: why => heard.push(why),
      })
      await expect.poll(() => heard).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)])
      expect(keyValue.isUp()).toBe(false)
    })

    it('counts as down while it has no free memory', async () => {
      const keyValue = open(server.url)
      await isUp(keyValue)
      await raw.config('SET', 'maxmemory', '1')
      expect(await keyValue.ping()).toBe(false)
      expect(keyValue.isUp()).toBe(false)
      await raw.config('SET', 'maxmemory', '0')
      await isUp(keyValue)
    })
  })

  it('causes an error if the configured database does not exist, and writes nothing to database 0', async () => {
    const raw = new Redis(server.url)
    await raw.flushall()
    const keyValue = open(`${server.url}/99`)
    await expect(keyValue.whenUp(5_000)).rejects.toThrow(
      /rejected database 99 of storage\.redis.*out of range/,
    )
    await expect(keyValue.run(COUNT, 'peage:test:lost', [1])).rejects.toBeInstanceOf(ScriptError)
    expect(await raw.exists('peage:test:lost', 'peage:limit:check')).toBe(0)
    const other = open(`${server.url}/7`)
    await other.whenUp(5_000)
    expect(await other.run(COUNT, 'peage:test:found', [1])).toBe(1)
    await raw.select(7)
    expect(await raw.get('peage:test:found')).toBe('1')
    raw.disconnect()
  })

  it('is found through Sentinel', async () => {
    const sentinel = await startRedis(inject('redisBin'), 'sentinel')
    const raw = new Redis(sentinel.url)
    await raw.call('sentinel', 'monitor', 'main', '127.0.0.1', String(server.port), '1')
    const keyValue = open({ sentinels: [sentinel.url], name: 'main' })
    await isUp(keyValue)
    expect(await keyValue.run(COUNT, 'peage:test:sentinel', [4])).toBe(4)
    const direct = new Redis(server.url)
    expect(await direct.get('peage:test:sentinel')).toBe('4')
    direct.disconnect()
    raw.disconnect()
    await keyValue.close()
    await sentinel.stop()
  })

  it('works as a Cluster, and scripts fail within 300 ms when the only node hangs', async () => {
    const node = await startRedis(inject('redisBin'), 'cluster')
    const raw = new Redis(node.url)
    await raw.cluster('ADDSLOTSRANGE', 0, 16_383)
    await expect.poll(() => raw.cluster('INFO')).toContain('cluster_state:ok')
    raw.disconnect()
    const keyValue = open({ cluster: [node.url] })
    await isUp(keyValue)
    expect(await keyValue.run(COUNT, 'peage:test:cluster', [5])).toBe(5)
    const keys = ['peage:test:one', 'peage:test:two', 'peage:test:one'] as const
    expect(await keyValue.runForAll(COUNT_ALL, keys, [5])).toEqual([5, 5, 10])
    node.pause()
    const started = performance.now()
    await expect(keyValue.run(COUNT, 'peage:test:cluster', [5])).rejects.toBeInstanceOf(ScriptError)
    expect(performance.now() - started).toBeLessThan(300)
    expect(keyValue.isUp()).toBe(false)
    node.resume()
    await isUp(keyValue)
    expect(await keyValue.ping()).toBe(true)
    await keyValue.close()
    await node.stop()
  })
})

describe('a Redis address', () => {
  it('makes scripts fail at once, without a crash, if no server listens there', async () => {
    for (const address of [
      'rediss://127.0.0.1:1',
      { cluster: ['redis://127.0.0.1:1', 'rediss://user:secret@127.0.0.1:1'] },
      { sentinels: ['redis://:secret@127.0.0.1:1'], name: 'main' },
    ]) {
      const keyValue = open(address)
      await keyValue.whenUp(50)
      await expect(keyValue.run(COUNT, 'peage:test', [1])).rejects.toBeInstanceOf(ScriptError)
    }
  })
})
