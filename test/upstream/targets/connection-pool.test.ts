// An upstream connection returns to its pool no matter how its request ended. Otherwise, the pool could never use the
// connection again.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { InFlight } from '../../../src/upstream/targets/connection.ts'
import { openConnectionPool } from '../../../src/upstream/targets/connection-pool.ts'
import { ask, RawConnection, requestBytes } from '../../security/raw-client.ts'
import { gatewayBefore } from '../../support/gateway-before.ts'
import { startScriptedUpstream } from '../scripted-upstream.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const webSocketKey = 'dGhlIHNhbXBsZSBub25jZQ=='

describe('the only connection to an upstream', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app:
    targets: ['${url}']
    connections: 1
    timeouts: { response: 300ms, idle: 300ms, connect: 1500ms }
routes:
  - { path: /app, upstream: app, auth: none }
  - { path: /socket, upstream: app, auth: none, websocket: true }
`,
  )
  beforeEach(() => {
    at.upstream.heads = 0
  })

  const get = () => ask(at.gateway.url, requestBytes('GET', '/app'))
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
  const accept = createHash('sha1')
    .update(`${webSocketKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64')
  const switching = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`

  const says = (bytes: string) => (socket: Socket) => socket.write(bytes)
  const asks = async (method: string, path: string, lines: string[] = [], body = '') => {
    await ask(at.gateway.url, requestBytes(method, path, lines, body), method)
  }
  /** Sends a request and disconnects when the upstream has read it. */
  const leaves = async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/app'))
    await expect.poll(() => at.upstream.heads).toBe(1)
    connection.close()
  }

  it.each<[string, (socket: Socket) => void, () => Promise<void>]>([
    ['a response', says(ok), () => asks('GET', '/app')],
    ['a response to HEAD', says(ok.slice(0, -2)), () => asks('HEAD', '/app')],
    [
      'a response with Connection: close',
      says(ok.replace('OK\r\n', 'OK\r\nConnection: close\r\n')),
      () => asks('GET', '/app'),
    ],
    [
      'a 304 with a length',
      says('HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n'),
      () => asks('GET', '/app'),
    ],
    [
      'a response before the end of the request body',
      says(ok),
      () => asks('POST', '/app', ['Content-Length: 70000'], 'fi'),
    ],
    ['bytes after the declared length', says(`${ok}${ok}`), () => asks('GET', '/app')],
    ['an invalid response', says('nonsense\r\n\r\n'), () => asks('GET', '/app')],
    ['a response that is cut off', socket => socket.end(ok.slice(0, -1)), () => asks('GET', '/app')],
    ['a response that stalls', says(ok.slice(0, -1)), () => asks('GET', '/app')],
    ['a reset', socket => socket.resetAndDestroy(), () => asks('GET', '/app')],
    ['silence', () => {}, () => asks('GET', '/app')],
    [
      'a stall on a connection that is to be closed',
      socket => socket.write('HTTP/1.0 200 OK\r\n\r\nx'),
      () => asks('GET', '/app'),
    ],
    ['a client that leaves before the response', () => {}, leaves],
    ['a client that leaves during the response', says(ok.slice(0, -1)), leaves],
    [
      'a refused upgrade',
      says(ok),
      () => asks('GET', '/socket', [...upgrade, `Sec-WebSocket-Key: ${webSocketKey}`]),
    ],
    [
      'a WebSocket that stays open',
      says(switching),
      async () => {
        const connection = new RawConnection(at.gateway.url)
        connection.write(requestBytes('GET', '/socket', [...upgrade, `Sec-WebSocket-Key: ${webSocketKey}`]))
        expect((await connection.answer())?.status).toBe(101)
      },
    ],
  ])('is free again after %s', async (_, script, end) => {
    at.upstream.script = script
    await end()
    expect(at.upstream.heads).toBeGreaterThan(0)
    at.upstream.script = says(ok)
    for (let i = 0; i < 3; i += 1) expect((await get())?.body.toString()).toBe('ok')
  })

  it('serves waiting requests in the order of their arrival', async () => {
    at.upstream.script = () => {}
    const holder = new RawConnection(at.gateway.url)
    holder.write(requestBytes('GET', '/app'))
    await expect.poll(() => at.upstream.heads).toBe(1)
    const order: number[] = []
    const waiting = []
    for (const name of [1, 2, 3]) {
      waiting.push(get().then(answer => order.push(answer?.status === 200 ? name : -name)))
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    at.upstream.script = says(ok)
    holder.close()
    await Promise.all(waiting)
    expect(order).toEqual([1, 2, 3])
  })

  /** Opens a pool without a gateway. */
  const poolOf = (connections: number, ageMs: number) =>
    openConnectionPool(
      { origin: at.upstream.url, address: undefined, serverName: undefined, tls: {} },
      { connections, connection_age: ageMs, timeouts: { connect: 1_000, response: 1_000, idle: 1_000 } },
    )
  /** Returns the callbacks for a request over a pool. The callbacks in `told` replace the defaults. */
  const handlerWith = (told: object) => ({
    isOver: false,
    onConnect() {},
    onHeaders: () => true,
    onData: () => true,
    onComplete() {},
    ...told,
  })

  it('can be replaced as soon as it becomes a WebSocket, and the WebSocket stays open when the pool is retired', async () => {
    at.upstream.script = (socket, head) => {
      socket.write(switching)
      socket.on('data', bytes => socket.write(bytes))
      expect(head).toMatch(/^GET \/socket /)
    }
    const pool = poolOf(1, 1)
    const webSocket = await new Promise<Duplex>((resolve, reject) => {
      const handler = handlerWith({
        onUpgrade(_status: number, _headers: Buffer[], socket: Duplex) {
          handler.isOver = true
          resolve(socket)
        },
        onError: reject,
      })
      const dispatched = { method: 'GET' as const, path: '/socket', upgrade: 'websocket' }
      pool.tryAcquire(1)?.dispatch(dispatched, handler as unknown as InFlight)
    })
    await expect.poll(() => pool.hasFree()).toBe(true)
    await pool.retire()
    webSocket.write('still here')
    const [echoed] = await once(webSocket, 'data')
    expect(String(echoed)).toBe('still here')
    webSocket.destroy()
    await pool.close()
  })

  it('expires at a random age between 90 % and 110 % of `connection_age`', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    at.upstream.script = says(ok)
    const together = 40
    const pool = poolOf(together, 10_000)
    /** Sends as many requests as there are connections. @returns the number of connections that were opened for them */
    const openedByRequests = async () => {
      const before = at.upstream.connections
      const answers = Array.from({ length: together }, () => {
        return new Promise<void>((resolve, reject) => {
          const handler = handlerWith({
            onComplete() {
              handler.isOver = true
              resolve()
            },
            onError: reject,
          })
          pool.tryAcquire(1)?.dispatch({ method: 'GET', path: '/' }, handler as unknown as InFlight)
        })
      })
      await Promise.all(answers)
      await new Promise(resolve => setImmediate(resolve))
      return at.upstream.connections - before
    }
    try {
      expect(await openedByRequests()).toBe(together)
      vi.advanceTimersByTime(8_999)
      expect(await openedByRequests()).toBe(0)
      vi.advanceTimersByTime(1_001)
      const replaced = await openedByRequests()
      expect(replaced).toBeGreaterThan(0)
      expect(replaced).toBeLessThan(together)
      vi.advanceTimersByTime(1_001)
      expect(await openedByRequests()).toBe(together - replaced)
    } finally {
      vi.useRealTimers()
      await pool.close()
    }
  })

  it('is free again after a request that could not be sent', async () => {
    const connections = poolOf(1, 0)
    const refused = new Promise<Error>(resolve => {
      const handler = {
        isOver: false,
        onError(error: Error) {
          handler.isOver = true
          resolve(error)
        },
      }
      connections.tryAcquire(1)?.dispatch({ method: 'GET', path: 'no path' }, handler as InFlight)
    })
    expect((await refused).message).toContain('path')
    expect(connections.hasFree()).toBe(true)
    expect(connections.tryAcquire(1)).toBeDefined()
    expect(connections.hasFree()).toBe(false)
    await connections.close()
  })
})
