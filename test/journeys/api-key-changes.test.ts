// Changes of API keys by plain SQL, and the expiry of keys, take effect on requests and open streams of all replicas.

import { createHash } from 'node:crypto'
import { Agent, request as httpRequest } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { newUser, type TestUser } from '../support/client.ts'
import { type Stores, startGateway, type TestGateway } from '../support/gateway.ts'
import { scrape } from '../support/scrape.ts'
import { type Server, startPostgres } from '../support/servers.ts'
import { describeWithPostgresBinary, describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

const yaml = (upstream: string) => `upstreams: { app: { targets: ['${upstream}'] } }
routes:
  - { path: /chat, upstream: app, websocket: true, scope: chat }
`

let made = 0
interface GivenKey {
  readonly id: string
  readonly key: string
}

/** Stores a key by plain SQL, because operators may do this too. */
async function giveNamedKey(
  gateway: TestGateway,
  user: TestUser,
  { scopes = null, expiresAt = null }: { scopes?: string[] | null; expiresAt?: number | null } = {},
): Promise<GivenKey> {
  made += 1
  const key = `peage_changed${made}`
  const hash = createHash('sha256').update(key).digest('hex')
  const [row] = await gateway.sql<{ id: string }>(
    `insert into api_keys (user_id, token_hash, name, prefix, scopes, expires_at)
     values ($1, $2, 'n', 'p', $3, $4) returning id`,
    [user.id, hash, scopes, expiresAt === null ? null : new Date(expiresAt)],
  )
  return { id: String(row?.id), key }
}

/** Sends a request with the agent. @returns the status code and the error code, or `stream` for an open stream */
function get(url: string, key: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(`${url}/chat`, { agent, headers: { 'x-api-key': key } }, response => {
      const code = response.headers['x-peage-error']
      if (response.headers['content-type'] === 'text/event-stream') return resolve('stream')
      response
        .resume()
        .on('end', () =>
          resolve(code === undefined ? `${response.statusCode}` : `${response.statusCode} ${code}`),
        )
    })
    sent.on('error', reject).end()
  })
}

/** Sends a request with the key. @returns whether the gateway found all records for the request in its cache */
async function isCached(gateway: TestGateway, key: string): Promise<boolean> {
  const reads = async () => {
    const metrics = await scrape(gateway.admin)
    return (
      metrics.sum('peage_identity_cache_total') - metrics.sum('peage_identity_cache_total', { result: 'hit' })
    )
  }
  const before = await reads()
  await get(gateway.url, key)
  return (await reads()) === before
}

/** Opens a WebSocket and an event stream. `expectEnd` expects that both end within 1 s after `since`. */
async function openBoth(url: string, key: string) {
  const socket = await openWebSocket(`${url}/chat`, { headers: { 'x-api-key': key } })
  const response = await fetch(`${url}/chat`, { headers: { 'x-api-key': key, accept: 'text/event-stream' } })
  let isOpen = true
  const ended = response.text().then(() => {
    isOpen = false
    return performance.now()
  })
  return {
    socket,
    isOpen: () => isOpen,
    async expectEnd(since: number) {
      const { code, at } = await socket.closed
      expect([code, at - since < 1_000, (await ended) - since < 1_000]).toEqual([1008, true, true])
    },
  }
}

const answerEvents: NonNullable<WebSocketUpstream['answer']> = (request, response) => {
  if (request.headers.accept !== 'text/event-stream') return void response.end('plain')
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
}

describeWithServices('a change of an API key by SQL', () => {
  let stores: Stores
  let upstream: WebSocketUpstream
  let replicas: TestGateway[]
  let gateway: TestGateway
  let user: TestUser
  beforeAll(async () => {
    stores = await services.open()
    upstream = await startWebSocketUpstream()
    upstream.answer = answerEvents
    replicas = [
      await startGateway(yaml(upstream.url), stores),
      await startGateway(yaml(upstream.url), stores),
    ]
    gateway = replicas[0] as TestGateway
    user = await newUser(gateway)
  })
  afterAll(async () => {
    for (const replica of replicas) await replica.stop()
    await upstream.close()
    await services.drop(stores)
  })

  const later = 3_600_000
  it.each([
    ['revoked_at = now()', '401 token_invalid'],
    ["expires_at = now() - interval '1 day'", '401 token_invalid'],
    ["scopes = '{other}'", '403 scope_insufficient'],
    ["scopes = '{}'", '403 scope_insufficient'],
    [undefined, '401 token_invalid'],
  ])('reaches two replicas within 50 ms, and ends streams within 1 s: %s', async (change, refused) => {
    const { id, key } = await giveNamedKey(gateway, user, {
      scopes: ['chat'],
      expiresAt: gateway.clock.at + later,
    })
    const agents = replicas.map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
    const statuses = () => Promise.all(replicas.map(({ url }, i) => get(url, key, agents[i])))
    for (let i = 0; i < 3; i += 1) expect(await statuses()).toEqual(['200', '200'])
    const streams = await Promise.all(replicas.map(({ url }) => openBoth(url, key)))
    await gateway.sql(
      change === undefined
        ? 'delete from api_keys where id = $1'
        : `update api_keys set ${change} where id = $1`,
      [id],
    )
    const since = performance.now()
    await sleep(50)
    expect(await statuses()).toEqual([refused, refused])
    for (const { expectEnd } of streams) await expectEnd(since)
    for (const agent of agents) agent.destroy()
  })

  it('ends the streams of the key within 1 s if it gives the key to another user', async () => {
    const { id, key } = await giveNamedKey(gateway, user)
    const other = await newUser(gateway)
    const { expectEnd } = await openBoth(gateway.url, key)
    await gateway.sql('update api_keys set user_id = $2 where id = $1', [id, other.id])
    await expectEnd(performance.now())
    expect(await get(gateway.url, key)).toBe('200')
  })

  it('lets requests and streams continue after the old expiry if it sets a later expiry', async () => {
    const { id, key } = await giveNamedKey(gateway, user, { expiresAt: gateway.clock.at + later })
    const stream = await openBoth(gateway.url, key)
    await gateway.sql("update api_keys set expires_at = expires_at + interval '1 day' where id = $1", [id])
    await sleep(600)
    const start = gateway.clock.at
    gateway.clock.at += later + 1
    await sleep(1_100)
    expect([await get(gateway.url, key), stream.isOpen()]).toEqual(['200', true])
    gateway.clock.at += 24 * 3_600_000
    const since = performance.now()
    expect(await get(gateway.url, key)).toBe('401 token_invalid')
    await stream.expectEnd(since)
    gateway.clock.at = start
  })

  it('can set an expiry; the key is valid until 1 ms before this time', async () => {
    const expiresAt = gateway.clock.at + later
    const { key } = await giveNamedKey(gateway, user, { expiresAt })
    const start = gateway.clock.at
    gateway.clock.at = expiresAt - 1
    expect(await get(gateway.url, key)).toBe('200')
    gateway.clock.at = expiresAt
    expect(await get(gateway.url, key)).toBe('401 token_invalid')
    gateway.clock.at = start
  })
})

describeWithPostgresBinary('an API key that expires while Postgres is down', () => {
  let postgres: Server
  let upstream: WebSocketUpstream
  let gateway: TestGateway
  beforeAll(async () => {
    ;[postgres, upstream] = await Promise.all([
      startPostgres(inject('postgresBin')),
      startWebSocketUpstream(),
    ])
    upstream.answer = answerEvents
    gateway = await startGateway(
      yaml(upstream.url),
      { postgres: postgres.url, redis: '' },
      { rateLimits: "rate_limits: { login_failures: 0, login_failures_per_address: 0, bad_keys: '2/1h' }" },
    )
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([postgres?.stop(), upstream?.close()])
  })

  it('is refused with 401 token_invalid, counts towards the limit bad_keys, and its streams end within 1 s', async () => {
    const user = await newUser(gateway)
    const expiring = await giveNamedKey(gateway, user, {
      scopes: ['chat'],
      expiresAt: gateway.clock.at + 60_000,
    })
    const other = await giveNamedKey(gateway, user)
    for (const { key } of [expiring, other]) expect(await get(gateway.url, key)).toBe('200')
    // The gateway caches a key only while its change feed works. On a busy machine, the feed may still be starting.
    await expect.poll(() => isCached(gateway, expiring.key)).toBe(true)
    const stream = await openBoth(gateway.url, expiring.key)
    await postgres.kill()
    await expect.poll(() => get(gateway.url, other.key)).toBe('401 key_check_failed')
    expect(await get(gateway.url, expiring.key)).toBe('401 key_check_failed')
    expect(stream.isOpen()).toBe(true)
    gateway.clock.at += 60_001
    const since = performance.now()
    await stream.expectEnd(since)
    const answers = [1, 2, 3].map(() => get(gateway.url, expiring.key))
    expect(await Promise.all(answers)).toEqual(['401 token_invalid', '401 token_invalid', '429 rate_limited'])
    expect(await get(gateway.url, other.key)).toBe('401 key_check_failed')
    await postgres.restart()
  })
})
