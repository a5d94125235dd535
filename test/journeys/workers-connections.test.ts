// The primary process passes connections to the worker processes. TLS, timeouts and WebSockets work on these
// connections too.
import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { first } from '../support/certificates.ts'
import { ask, type Crew, startCrew } from '../support/crew.ts'
import type { Stores } from '../support/gateway.ts'
import { describeWithServices } from '../support/services.ts'
import { services } from '../support/setups.ts'
import { openWebSocket, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

const timeouts = ', timeouts: { headers: 500ms, body_idle: 600ms, keep_alive: 700ms }'

describeWithServices('connections of two workers', () => {
  let stores: Stores
  let upstream: WebSocketUpstream
  let crew: Crew | undefined
  /** The server settings with which the current crew was started. */
  let running: string | undefined
  beforeAll(async () => {
    stores = await services.open()
    upstream = await startWebSocketUpstream()
  })
  afterAll(async () => {
    await crew?.stop()
    await upstream?.close()
    if (stores !== undefined) await services.drop(stores)
  })
  /**
   * Returns the running crew (a primary and its workers) if it was started with the same settings. Otherwise, stops
   * this crew and starts a new one.
   */
  async function start(server = ''): Promise<Crew> {
    if (crew !== undefined && running === server && crew.child.exitCode === null) return crew
    await crew?.stop()
    const routes = `upstreams: { app: { targets: ['${upstream.url}'] } }
routes:
  - { path: /open, upstream: app, auth: none, websocket: true }
  - { path: /public/*, upstream: app, auth: none }
`
    running = server
    crew = await startCrew({ stores, routes, server })
    return crew
  }
  /** Waits until the server has closed the connection. @returns how long this took, in milliseconds */
  async function timeToEnd(connection: RawConnection): Promise<number> {
    const begun = performance.now()
    await expect.poll(() => connection.ended, { timeout: 10_000, interval: 20 }).toBe(true)
    return performance.now() - begun
  }

  it('are served over TLS by both workers', async () => {
    const crew = await start(`, tls: ${JSON.stringify(first.files)}`)
    expect(crew.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(`${crew.url}/public/x`)))
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
    expect(new Set(answers.map(({ worker }) => worker)).size).toBe(2)
  })

  it('get 100 Continue before the client sends a body', async () => {
    const crew = await start()
    for (let index = 0; index < 4; index++) {
      const status = await new Promise((resolve, reject) => {
        const asking = request(`${crew.url}/public/x`, {
          method: 'POST',
          agent: false,
          headers: { expect: '100-continue', 'content-length': 4 },
        })
        asking.on('continue', () => asking.end('body')).on('error', reject)
        asking.on('response', response => resolve(response.resume().statusCode))
        asking.flushHeaders()
      })
      expect(status).toBe(200)
    }
  })

  it('carry WebSockets, and a drain closes these WebSockets with 1001', async () => {
    const crew = await start()
    const clients = await Promise.all([1, 2, 3, 4].map(() => openWebSocket(`${crew.url}/open`)))
    for (const [index, client] of clients.entries()) {
      client.socket.send(`hello ${index}`)
      expect(await client.next()).toBe(`hello ${index}`)
    }
    crew.child.kill('SIGTERM')
    expect(await Promise.all(clients.map(async ({ closed }) => (await closed).code))).toEqual(
      Array(4).fill(1001),
    )
    expect(await crew.ended).toBe(0)
  })

  it('are closed within 3 s if a request head arrives too slowly or the connection is idle', async () => {
    const crew = await start(timeouts)
    const slow = [1, 2].map(() => new RawConnection(crew.url))
    for (const connection of slow) connection.write('GET /public/x HTTP/1.1\r\nX: ')
    for (const time of await Promise.all(slow.map(timeToEnd))) expect(time).toBeLessThan(3_000)
    const idle = [1, 2].map(() => new RawConnection(crew.url))
    for (const connection of idle) {
      connection.write(requestBytes('GET', '/public/x'))
      expect((await connection.answer())?.status).toBe(200)
    }
    for (const time of await Promise.all(idle.map(timeToEnd))) expect(time).toBeLessThan(3_000)
  })
})
