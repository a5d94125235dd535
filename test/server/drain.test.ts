// Drains listeners with many kinds of connections. Checks which connections finish or close, and when the drain ends.
import { once } from 'node:events'
import type { Server, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { TLSSocket } from 'node:tls'
import fc from 'fast-check'
import fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { createHttpServer, schemeOf } from '../../src/http/http-server.ts'
import { detachSocket, routeUpgrades } from '../../src/http/upgrade.ts'
import { createDrain } from '../../src/server/drain.ts'
import { RawConnection, requestBytes } from '../security/raw-client.ts'
import { first } from '../support/certificates.ts'
import { handshake } from '../support/web-sockets.ts'

const seed = 20_261_122
const timeouts = { headers: 60_000, body_idle: 60_000, keep_alive: 60_000 }
const wholeBody = 'first and last'
/** More bytes than the kernel buffers for a client that reads nothing. */
const large = Buffer.alloc(16 * 1024 * 1024, 'x')

async function listen(tls: { cert: string; key: string } | undefined) {
  /** Requests that wait for their responses, by path. */
  const waiting = new Map<string, ServerResponse>()
  let onWaiting = () => {}
  const app = fastify({
    serverFactory: () =>
      createHttpServer({ timeouts, tls, isIdle: () => true }, (request, response) => {
        const path = request.url ?? ''
        if (request.headers.upgrade !== undefined) {
          response.writeHead(101, { connection: 'Upgrade', upgrade: 'websocket' }).flushHeaders()
          const socket = detachSocket(response)
          socket.on('end', () => socket.end()).resume()
        } else if (path === '/quick') response.end('quick')
        else if (path === '/large') response.end(large)
        else {
          if (path.startsWith('/begun')) {
            response.writeHead(200, { 'content-length': wholeBody.length }).write(wholeBody.slice(0, 5))
          }
          waiting.set(path, response)
          onWaiting()
        }
      }),
  })
  const server: Server = app.server
  routeUpgrades(server, request => request.headers.upgrade === 'websocket', { language: () => 'fr' })
  const drain = createDrain(app)
  const listening = await app.listen({ port: 0, host: '127.0.0.1' })
  const url = listening.replace(/^https?/, schemeOf(app))

  let made = 0
  /** Sends a request to which the server does not respond at once. The returned function completes the response. */
  async function ask(connection: RawConnection, prefix: string, lines: string[] = []): Promise<Finish> {
    made += 1
    const path = `${prefix}/${made}`
    const arrival = new Promise<void>(resolve => {
      onWaiting = resolve
    })
    connection.write(requestBytes('GET', path, lines))
    await arrival
    return async () => {
      const response = waiting.get(path)
      if (response?.headersSent) response.end(wholeBody.slice(5))
      else response?.end(wholeBody)
      const answer = await connection.answer()
      expect(answer?.complete).toBe(true)
      expect(answer?.body.toString()).toBe(wholeBody)
    }
  }

  return {
    drain,
    url,
    /**
     * Opens a connection. If the drain must wait for the connection, also returns a function that completes its request
     * or its tunnel.
     */
    async open(kind: Kind): Promise<[RawConnection, Finish | undefined]> {
      // A plain TCP connection to the TLS listener stays in its handshake.
      const isOverTls = tls !== undefined && kind !== 'handshaking'
      const connection = new RawConnection(isOverTls ? url : url.replace('https:', 'http:'))
      await once(connection.socket, connection.socket instanceof TLSSocket ? 'secureConnect' : 'connect')
      if (kind === 'half a head') connection.write('GET /quick HTTP/1.1\r\nHo')
      else if (kind === 'idle') {
        connection.write(requestBytes('GET', '/quick'))
        expect((await connection.answer())?.status).toBe(200)
      } else if (kind === 'waiting') return [connection, await ask(connection, '/slow')]
      else if (kind === 'half answered') return [connection, await ask(connection, '/begun')]
      else if (kind === 'waiting with h2c') {
        return [connection, await ask(connection, '/slow', ['Connection: Upgrade', 'Upgrade: h2c'])]
      } else if (kind === 'tunnelled') {
        connection.write(requestBytes('GET', '/socket', handshake))
        expect((await connection.answer())?.status).toBe(101)
        return [connection, async () => void connection.socket.end()]
      }
      return [connection, undefined]
    },
  }
}

type Finish = () => Promise<void>
const kinds = [
  'silent',
  'handshaking',
  'half a head',
  'idle',
  'waiting',
  'half answered',
  'waiting with h2c',
  'tunnelled',
] as const
type Kind = (typeof kinds)[number]
const crowd = fc.array(fc.constantFrom(...kinds), { minLength: 1, maxLength: 8 })

describe.concurrent.each([
  ['HTTP', undefined],
  ['TLS', first],
])('a drain over %s', (_, tls) => {
  it('waits until a slow client has received the whole response, even if the handler has already ended it', async () => {
    const { drain, url } = await listen(tls)
    const connection = new RawConnection(url)
    connection.write(requestBytes('GET', '/large'))
    await once(connection.socket, 'data')
    connection.socket.pause()
    const over = drain.run(25_000)
    await sleep(300)
    connection.socket.resume()
    const answer = await connection.answer('GET', 20_000)
    expect([answer?.complete, answer?.body.length]).toEqual([true, large.length])
    await over
    connection.close()
  })

  it('closes connections without a request, lets all others finish in any order, and ends when the last one ends', async () => {
    await fc.assert(
      fc.asyncProperty(crowd, fc.infiniteStream(fc.nat()), async (crowd, order) => {
        const { drain, url, open } = await listen(tls)
        const opened: [RawConnection, Finish | undefined][] = []
        for (const kind of crowd) opened.push(await open(kind))
        let isOver = false
        const over = drain.run(60_000).then(() => {
          isOver = true
        })
        const unfinished = []
        for (const [connection, finish] of opened) {
          if (finish === undefined) expect(await connection.endsWithin(5_000)).toBe(true)
          else unfinished.push(finish)
        }
        const late = new RawConnection(url)
        expect(await late.endsWithin(5_000)).toBe(true)
        while (unfinished.length > 0) {
          expect(isOver).toBe(false)
          const [next] = unfinished.splice((order.next().value ?? 0) % unfinished.length, 1)
          await next?.()
        }
        for (const [connection] of opened) expect(await connection.endsWithin(5_000)).toBe(true)
        for (const [connection] of opened) connection.close()
        await over
      }),
      { seed, numRuns: 10 },
    )
  })

  it('still serves a request that arrives on a connection opened just before the drain', async () => {
    const { drain, open } = await listen(tls)
    const [connection] = await open('silent')
    const over = drain.run(60_000)
    connection.write(requestBytes('GET', '/quick'))
    expect((await connection.answer())?.body.toString()).toBe('quick')
    expect(await connection.endsWithin(5_000)).toBe(true)
    connection.close()
    await over
  })

  it('still serves connections that the listener has not accepted yet', async () => {
    const { drain, url } = await listen(tls)
    const connections = Array.from({ length: 40 }, () => new RawConnection(url))
    for (const connection of connections) connection.write(requestBytes('GET', '/quick'))
    // After the next tick, the kernel has all connections, but the listener has not accepted them yet.
    await new Promise(process.nextTick)
    const over = drain.run(60_000)
    for (const connection of connections) {
      expect((await connection.answer())?.body.toString()).toBe('quick')
      connection.close()
    }
    await over
  })

  it('ends at its time limit and closes all connections if one of them does not finish', async () => {
    await fc.assert(
      fc.asyncProperty(crowd, fc.constantFrom(0, 30), async (crowd, timeMs) => {
        const { drain, open } = await listen(tls)
        const opened: [RawConnection, Finish | undefined][] = []
        for (const kind of crowd) opened.push(await open(kind))
        const startedAt = performance.now()
        await drain.run(timeMs)
        const tookMs = performance.now() - startedAt
        const isAnyUnfinished = opened.some(([, finish]) => finish !== undefined)
        // Timers have a resolution of 1 ms, so the test has a tolerance of 2 ms.
        if (isAnyUnfinished) expect(tookMs).toBeGreaterThan(timeMs - 2)
        for (const [connection] of opened) expect(await connection.endsWithin(5_000)).toBe(true)
        for (const [connection] of opened) connection.close()
      }),
      { seed, numRuns: 10 },
    )
  })
})
