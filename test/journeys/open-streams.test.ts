// An open WebSocket or event stream ends within 1 s after its user loses access.
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { giveKey, newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway, textOf } from '../support/gateway.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary, describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import {
  accepted,
  handshake,
  openWebSocket,
  startWebSocketUpstream,
  type WebSocketUpstream,
} from '../support/web-sockets.ts'

const routes = (upstream: string) => `upstreams:
  app: { targets: ['${upstream}'] }
routes:
  - { name: chat, path: /chat, upstream: app, websocket: true }
  - { name: paid, path: /paid, upstream: app, websocket: true, plans: [premium, pro] }
  - { name: maybe, path: /maybe, upstream: app, websocket: true, auth: optional }
`

const events: NonNullable<WebSocketUpstream['answer']> = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
}

/** Returns whether the WebSocket still echoes a message. */
async function echoes(client: Awaited<ReturnType<typeof openWebSocket>>): Promise<boolean> {
  client.socket.send('there?')
  return (await client.next()) === 'there?'
}

/** Expects that the WebSocket is closed with 1008 within 1 s after `since`. */
async function expectEnded(client: Awaited<ReturnType<typeof openWebSocket>>, since: number): Promise<void> {
  const { code, at } = await client.closed
  expect([code, at - since < 1_000]).toEqual([1008, true])
}

/** Returns whether `sql` is the statement that checks open streams. */
const isAboutStreams = (sql: string) => /from users u where u\.id = any/.test(sql)

const deactivate = (gateway: TestGateway, user: TestUser) =>
  gateway.sql('update users set is_active = 0 where id = $1', [user.id])

describe('open streams', () => {
  const at = gatewayBefore(startWebSocketUpstream, routes)
  beforeAll(() => {
    at.upstream.answer = events
  })

  const open = (path: string, asking: Parameters<typeof openWebSocket>[1]) =>
    openWebSocket(at.gateway.url + path, asking)

  it('a WebSocket is closed with 1008 within 1 s after its user is deactivated; streams of other users stay open', async () => {
    const [user, other] = [await newUser(at.gateway), await newUser(at.gateway)]
    const otherStream = await open('/chat', { token: other.access })
    const ended = await open('/chat', { token: user.access })
    await deactivate(at.gateway, user)
    const started = performance.now()
    await expectEnded(ended, started)
    await expect.poll(() => at.upstream.closed).toContainEqual({ code: 1001 })
    expect(await echoes(otherStream)).toBe(true)
    otherStream.socket.terminate()
  })

  it('an event stream ends cleanly within 1 s after its user is deleted', async () => {
    const user = await newUser(at.gateway)
    const response = await fetch(`${at.gateway.url}/chat`, {
      headers: { authorization: `Bearer ${user.access}` },
    })
    await at.gateway.sql('delete from users where id = $1', [user.id])
    const started = performance.now()
    expect(await response.text()).toBe('data: 1\n\n')
    expect(performance.now() - started).toBeLessThan(1_000)
  })

  it('a change of plan closes only the streams of routes that do not allow the new plan', async () => {
    const user = await newUser(at.gateway, 'premium')
    const paid = await open('/paid', { token: user.access })
    const chat = await open('/chat', { token: user.access })
    await at.gateway.sql("update users set plan = 'pro' where id = $1", [user.id])
    await new Promise(resolve => setTimeout(resolve, 1_100))
    expect(await echoes(paid)).toBe(true)
    await at.gateway.sql("update users set plan = 'free' where id = $1", [user.id])
    const started = performance.now()
    await expectEnded(paid, started)
    expect(await echoes(chat)).toBe(true)
    chat.socket.terminate()
  })

  it('the revocation of an API key closes only the streams that were opened with this key', async () => {
    const user = await newUser(at.gateway)
    await giveKey(at.gateway, user, 'peage_a')
    const byKey = await open('/chat', { headers: { 'x-api-key': 'peage_a' } })
    const byToken = await open('/chat', { token: user.access })
    // Simulates that the user created a new key, which revoked the old key. The user has a valid key again, but the
    // stream was opened with the old key.
    await at.gateway.sql('update api_tokens set revoked = 1 where user_id = $1', [user.id])
    await giveKey(at.gateway, user, 'peage_b')
    const started = performance.now()
    await expectEnded(byKey, started)
    expect(await echoes(byToken)).toBe(true)
    byToken.socket.terminate()
  })

  it('a logout or an expired token closes no stream', async () => {
    const user = await newUser(at.gateway)
    const client = await open('/chat', { token: user.access })
    await fetch(`${at.gateway.url}/api/v1/auth/logout`, {
      method: 'POST',
      body: JSON.stringify({ refresh_token: user.refresh }),
    })
    at.gateway.clock.at += 16 * 60_000
    await new Promise(resolve => setTimeout(resolve, 1_100))
    expect(await echoes(client)).toBe(true)
    client.socket.terminate()
  })

  it('the check of open streams runs no database statement if all streams are anonymous', async () => {
    const { database } = at.gateway.backing
    const query = database.query
    const statements: string[] = []
    // After this wait, the gateway no longer checks streams that earlier tests opened.
    await new Promise(resolve => setTimeout(resolve, 600))
    const stranger = await open('/maybe', {})
    database.query = (...parts) => {
      const text = textOf(parts[0])
      if (isAboutStreams(text)) statements.push(text)
      return query(...parts) as never
    }
    await new Promise(resolve => setTimeout(resolve, 1_200))
    expect(statements).toEqual([])
    expect(await echoes(stranger)).toBe(true)
    stranger.socket.terminate()
    database.query = query
  })

  it('one statement checks all open streams', async () => {
    const { database } = at.gateway.backing
    const users = [await newUser(at.gateway), await newUser(at.gateway), await newUser(at.gateway)]
    const clients = await Promise.all(users.map(({ access }) => open('/chat', { token: access })))
    const query = database.query
    const asked: unknown[] = []
    database.query = (sql, values) => {
      if (isAboutStreams(textOf(sql))) asked.push(values?.[0])
      return query(sql, values) as never
    }
    await expect.poll(() => asked.length, { timeout: 2_000 }).toBeGreaterThan(1)
    database.query = query
    for (const ids of asked)
      expect((ids as number[]).toSorted()).toEqual(users.map(({ id }) => id).toSorted())
    for (const { socket } of clients) socket.terminate()
  })

  describe('a WebSocket that is closed in the middle of a frame', () => {
    const switching = `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`

    /**
     * Connects a client to an upstream that writes one piece every 40 ms, then deactivates the user. Returns what the
     * client received.
     */
    async function received(piece: (index: number) => Buffer): Promise<{ bytes: Buffer; took: number }> {
      const user = await newUser(at.gateway)
      at.upstream.refuse = socket => {
        socket.write(switching)
        socket.resume()
        let index = 0
        const timer = setInterval(() => socket.write(piece(index++)), 40)
        socket.on('close', () => clearInterval(timer))
        socket.on('end', () => socket.end())
      }
      const client = new RawConnection(at.gateway.url)
      client.write(requestBytes('GET', '/chat', [...handshake, `Authorization: Bearer ${user.access}`]))
      expect((await client.answer())?.status).toBe(101)
      await expect.poll(() => client.unread.length).toBeGreaterThan(0)
      await deactivate(at.gateway, user)
      const started = performance.now()
      expect(await client.endsWithin(2_000)).toBe(true)
      at.upstream.refuse = undefined
      client.close()
      return { bytes: client.unread, took: performance.now() - started }
    }

    it('receives the Close frame after the end of that frame', async () => {
      const size = 40_000
      const header = Buffer.from([0x82, 126, size >> 8, size & 0xff])
      // Each frame is sent in four pieces with equal payloads. The first piece also contains the header. Every byte of
      // the payload looks like the start of a text frame.
      const piece = Buffer.alloc(size / 4, 0x81)
      const { bytes, took } = await received(index =>
        index % 4 === 0 ? Buffer.concat([header, piece]) : piece,
      )
      expect(took).toBeLessThan(1_000)
      const frame = size + header.length
      const whole = Math.floor(bytes.length / frame)
      expect(whole).toBeGreaterThan(0)
      for (let i = 0; i < whole; i++) {
        expect(bytes.subarray(i * frame, i * frame + 4).equals(header)).toBe(true)
      }
      // Compares only the next nine bytes, so that a failed test does not print megabytes.
      expect(
        bytes
          .subarray(whole * frame)
          .subarray(0, 9)
          .toString('hex'),
      ).toBe('880203f0')
    })

    it('ends without a Close frame if that frame does not end in time', async () => {
      const header = Buffer.from([0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0])
      const piece = Buffer.alloc(1_000, 1)
      const { bytes, took } = await received(index => (index === 0 ? Buffer.concat([header, piece]) : piece))
      expect(took).toBeLessThan(1_000)
      expect((bytes.length - header.length) % piece.length).toBe(0)
    })
  })
})

describeWithServices('open streams of two replicas', () => {
  it('are closed within 1 s after the other replica or another program deactivates the user', async () => {
    const stores: Stores = await services.open()
    const upstream = await startWebSocketUpstream()
    upstream.answer = events
    const replicas = await Promise.all([
      startGateway(routes(upstream.url), stores),
      startGateway(routes(upstream.url), stores),
    ])
    const [first, second] = replicas
    const user = await newUser(first)
    const clients = await Promise.all(
      replicas.map(({ url }) => openWebSocket(`${url}/chat`, { token: user.access })),
    )
    const response = await fetch(`${second.url}/chat`, {
      headers: { authorization: `Bearer ${user.access}` },
    })
    const stream = response.text()
    const started = performance.now()
    const answer = await fetch(`${first.admin}/admin/v1/users/${user.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${first.adminToken}` },
      body: JSON.stringify({ is_active: 0 }),
    })
    expect(answer.status).toBe(200)
    for (const client of clients) await expectEnded(client, started)
    await stream
    expect(performance.now() - started).toBeLessThan(1_000)

    const other = await newUser(first)
    const open = await openWebSocket(`${second.url}/chat`, { token: other.access })
    const program = new Client({ connectionString: stores.postgres })
    await program.connect()
    await program.query('update users set is_active = 0 where id = $1', [other.id])
    const changed = performance.now()
    await program.end()
    await expectEnded(open, changed)
    await Promise.all(replicas.map(replica => replica.stop()))
    await upstream.close()
    await services.drop(stores)
  })
})

describeWithPostgresBinary('open streams while Postgres is down', () => {
  let postgres: Server
  let upstream: WebSocketUpstream
  let gateway: TestGateway
  beforeAll(async () => {
    ;[postgres, upstream] = await Promise.all([
      startPostgres(inject('postgresBin')),
      startWebSocketUpstream(),
    ])
    gateway = await startGateway(
      routes(upstream.url),
      { postgres: postgres.url, redis: '' },
      { auth: ', logout_ends_access: true' },
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([postgres?.stop(), upstream?.close()])
  })

  it('stay open; within 1 s after Postgres is back, the streams of users without access are closed', async () => {
    const [user, other] = [await newUser(gateway), await newUser(gateway)]
    const otherStream = await openWebSocket(`${gateway.url}/chat`, { token: other.access })
    const client = await openWebSocket(`${gateway.url}/chat`, { token: user.access })
    const third = await newUser(gateway)
    const ended = await openWebSocket(`${gateway.url}/chat`, { token: third.access })
    await postgres.kill()
    await new Promise(resolve => setTimeout(resolve, 1_500))
    expect(await echoes(client)).toBe(true)
    await postgres.restart()
    const program = new Client({ connectionString: postgres.url })
    await program.connect()
    await program.query('update users set is_active = 0 where id = $1', [user.id])
    await program.query('update refresh_tokens set revoked = 1 where user_id = $1', [third.id])
    const returned = performance.now()
    await program.end()
    for (const closing of [client, ended]) await expectEnded(closing, returned)
    expect(await echoes(otherStream)).toBe(true)
    otherStream.socket.terminate()
  })

  it('are closed after 30 s, except anonymous streams, even if the system clock jumps', async () => {
    const now = performance.now.bind(performance)
    let aheadMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => now() + aheadMs)
    onTestFinished(() => void vi.restoreAllMocks())
    const user = await newUser(gateway)
    const stranger = await openWebSocket(`${gateway.url}/maybe`)
    const client = await openWebSocket(`${gateway.url}/chat`, { token: user.access })
    await postgres.kill()
    gateway.clock.at += 3_600_000
    aheadMs = 25_000
    await new Promise(resolve => setTimeout(resolve, 1_500))
    expect(await echoes(client)).toBe(true)
    gateway.clock.at -= 7_200_000
    aheadMs = 30_000
    expect((await client.closed).code).toBe(1008)
    gateway.clock.at += 3_600_000
    expect(await echoes(stranger)).toBe(true)
    stranger.socket.terminate()
    await postgres.restart()
  })
})
