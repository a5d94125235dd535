// The connection that listens for changes can be lost, with or without an error. Until the change feed has reconnected,
// it is not fresh.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ChangeFeed, createChangeFeed } from '../../../src/storage/change-feed.ts'
import type { PostgresDatabase } from '../../../src/storage/postgres/postgres.ts'
import { postgresListener } from '../../../src/storage/postgres/postgres-listener.ts'
import { postgresDatabase } from '../../support/databases.ts'
import { describeWithServices } from '../../support/services.ts'
import { type StallingRelay, startStallingRelay } from '../../support/stalling-relay.ts'

describeWithServices('a change feed from a Postgres server', () => {
  let database: PostgresDatabase & { readonly url: string }
  let relay: StallingRelay
  let feed: ChangeFeed
  let states: string[]
  let heard: string[]
  let gaps: number

  beforeEach(async () => {
    states = []
    heard = []
    database = await postgresDatabase()
    relay = await startStallingRelay(database.url)
    // Only the listener connects through the relay, so a stall of the relay does not affect the pool.
    feed = createChangeFeed({
      listen: postgresListener(relay.url),
      database,
      now: () => performance.now(),
      onState: state => states.push(state),
    })
    feed.subscribe(
      change => heard.push(change),
      () => {
        gaps += 1
      },
    )
    await isTrusted(2_000)
    gaps = 0
  })
  afterEach(async () => {
    await feed?.close()
    await relay?.close()
    await database?.close()
  })

  const isTrusted = (timeout: number) =>
    expect.poll(() => feed.isFresh(), { timeout, interval: 5 }).toBe(true)
  const backends = `from pg_stat_activity where application_name = 'peage listen' and datname = current_database()`
  const listening = async () => (await database.query(`select pid ${backends}`)).length

  async function isHeard(): Promise<void> {
    const [user] = await database.query<{ id: number }>(
      `insert into users (email, password_hash) values ('user@example.com', 'none') returning id`,
    )
    await database.query("update users set plan = 'pro'")
    await feed.catchUp()
    expect(heard).toEqual([`user ${user?.id}`])
  }

  it('stops being fresh when Postgres ends its connection, and is fresh again within 2 s', async () => {
    await database.query(`select pg_terminate_backend(pid) ${backends}`)
    await expect.poll(() => feed.isFresh(), { timeout: 200, interval: 1 }).toBe(false)
    expect([gaps, states]).toEqual([1, ['lost']])
    await isTrusted(2_000)
    expect(gaps).toBeGreaterThan(1)
    expect(states).toEqual(['lost', 'trusted'])
    await isHeard()
  })

  it('stops being fresh within 3.5 s when its packets are lost, then reconnects and reports gaps', async () => {
    const { made } = relay
    relay.stall()
    const stalled = performance.now()
    await expect.poll(() => feed.isFresh(), { timeout: 3_500, interval: 5 }).toBe(false)
    expect(performance.now() - stalled).toBeGreaterThan(2_000)
    await expect.poll(() => relay.made, { timeout: 3_000, interval: 20 }).toBeGreaterThan(made)
    expect(states).toEqual(['lost'])
    expect(gaps).toBeGreaterThan(0)
    const before = gaps
    relay.flow()
    await isTrusted(4_000)
    expect(gaps).toBeGreaterThan(before)
    expect(states).toEqual(['lost', 'trusted'])
    await isHeard()
  })

  it('has no open connection after it is closed', async () => {
    expect(await listening()).toBe(1)
    await feed.close()
    await expect.poll(listening, { timeout: 2_000 }).toBe(0)
    await sleep(600)
    expect([await listening(), relay.made, states]).toEqual([0, 1, []])
  })
})

describe('a listener that cannot connect', () => {
  function listenTo(url: string) {
    let losses = 0
    const handlers = {
      onNotification() {},
      onListening() {
        expect.unreachable('no server accepts the connection')
      },
      onLost() {
        losses += 1
      },
    }
    const notifications = postgresListener(url)(['some_channel'], handlers)
    return { notifications, losses: () => losses }
  }

  it('retries until it is closed', async () => {
    let made = 0
    const server = createServer(socket => {
      made += 1
      socket.on('error', () => {}).destroy()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const { notifications, losses } = listenTo(`postgres://nobody@127.0.0.1:${port}/none`)
    await expect.poll(() => made, { timeout: 5_000 }).toBeGreaterThan(1)
    expect(losses()).toBeGreaterThan(0)
    await notifications.close()
    const before = made
    await sleep(600)
    expect(made).toBe(before)
    server.close()
  })

  it('does not crash if the certificate file in its URL does not exist', async () => {
    const { notifications, losses } = listenTo(
      'postgres://nobody@127.0.0.1:1/none?sslmode=verify-full&sslrootcert=/nonexistent/ca.pem',
    )
    await expect.poll(losses, { timeout: 5_000 }).toBeGreaterThan(1)
    await notifications.close()
  })
})
