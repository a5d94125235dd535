// The gateway pauses a response if its client is slow. If the upstream disconnects during the pause, other requests
// must still succeed.
import { createHash } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ask, RawConnection, requestBytes } from '../security/raw-client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts'

const closing = 'HTTP/1.1 200 OK\r\nConnection: close\r\n'
const piece = 'x'.repeat(50_000)

describe('a response that is paused for a slow client', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  /** The object that the gateway uses for the response to the last request. */
  let response: ServerResponse | undefined

  const onRequest = (message: unknown) => {
    response = (message as { response: ServerResponse }).response
  }
  const isHeldBack = () => response?.writableNeedDrain === true
  const bytesHeld = () => response?.writableLength ?? Number.NaN
  const soon = (time: number) => new Promise(resolve => setTimeout(resolve, time))

  beforeAll(async () => {
    upstream = await startScriptedUpstream()
    gateway = await startGateway(`upstreams:
  app: { targets: ['${upstream.url}'], connections: 1 }
routes:
  - { path: /app, upstream: app, auth: none }
  - { path: /socket, upstream: app, auth: none, websocket: true }
`)
  })
  afterAll(async () => {
    unsubscribe('http.server.request.start', onRequest)
    await gateway?.stop()
    await upstream?.close()
  })

  /** Sends pieces of a body until the gateway pauses the response. @returns the number of body bytes sent */
  async function fill(socket: Socket, head: string): Promise<number> {
    let sent = 0
    socket.write(head)
    do {
      socket.write(piece)
      sent += piece.length
      await soon(10)
    } while (!isHeldBack() && !socket.destroyed)
    return sent
  }

  it.each<[string, string, 'end' | 'resetAndDestroy', 'whole' | 'broken']>([
    ['ends a response without a length', `${closing}\r\n`, 'end', 'whole'],
    ['ends too early', `${closing}Content-Length: 1000000000\r\n\r\n`, 'end', 'broken'],
    ['ends an HTTP/1.0 response', 'HTTP/1.0 200 OK\r\n\r\n', 'end', 'whole'],
    ['resets a response without a length', `${closing}\r\n`, 'resetAndDestroy', 'broken'],
    [
      'resets a response with a length',
      `${closing}Content-Length: 1000000000\r\n\r\n`,
      'resetAndDestroy',
      'broken',
    ],
    ['resets an HTTP/1.0 response', 'HTTP/1.0 200 OK\r\n\r\n', 'resetAndDestroy', 'broken'],
    [
      'resets a response without Connection: close',
      'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n',
      'resetAndDestroy',
      'broken',
    ],
  ])(
    'looks complete to the client only if all of its bytes have arrived; the upstream %s',
    async (_, head, go, becomes) => {
      let sent = 0
      const gone = new Promise<void>(resolve => {
        upstream.script = async socket => {
          sent = await fill(socket, head)
          socket[go]()
          resolve()
        }
      })
      response = undefined
      subscribe('http.server.request.start', onRequest)
      const reader = new RawConnection(gateway.url)
      reader.socket.pause()
      reader.write(requestBytes('GET', '/app'))
      await gone
      unsubscribe('http.server.request.start', onRequest)
      await soon(100)
      reader.socket.resume()
      const answer = await reader.answer()
      expect(answer?.complete).toBe(becomes === 'whole')
      // If the response looks complete, the client must have received all bytes.
      if (becomes === 'whole') expect(answer?.body.length).toBe(sent)
      reader.close()
      upstream.script = socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      expect((await ask(gateway.url, requestBytes('GET', '/app')))?.body.toString()).toBe('ok')
    },
  )

  it('stays paused when an earlier WebSocket of the same upstream ends', async () => {
    const key = 'dGhlIHNhbXBsZSBub25jZQ=='
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
    let tunnel: Socket | undefined
    upstream.script = socket => {
      tunnel = socket
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      )
    }
    const webSocket = new RawConnection(gateway.url)
    const handshake = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    webSocket.write(requestBytes('GET', '/socket', [...handshake, `Sec-WebSocket-Key: ${key}`]))
    expect((await webSocket.answer())?.status).toBe(101)

    const filled = new Promise<Socket>(resolve => {
      upstream.script = async socket => {
        await fill(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n')
        resolve(socket)
      }
    })
    response = undefined
    subscribe('http.server.request.start', onRequest)
    const reader = new RawConnection(gateway.url)
    reader.socket.pause()
    reader.write(requestBytes('GET', '/app'))
    const socket = await filled
    unsubscribe('http.server.request.start', onRequest)
    tunnel?.end()
    await soon(100)
    for (let i = 0; i < 400; i += 1) socket.write(piece)
    await soon(300)
    expect(bytesHeld()).toBeLessThan(1_000_000)
    reader.close()
    webSocket.close()
  })
})
