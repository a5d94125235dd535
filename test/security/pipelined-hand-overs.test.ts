// A client sends an upgrade or CONNECT while earlier requests are pending. It first gets the responses to the earlier
// requests, and then a 400.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { first, tlsSettings } from '../support/certificates.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { accepted, handshake } from '../support/web-sockets.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { RawConnection, requestBytes, value } from './raw-client.ts'

/** More bytes than one write or one queue can hold. */
const large = Buffer.alloc(4 * 1024 * 1024, 'x')
/** More bytes than all sockets between upstream and client can buffer. */
const huge = Buffer.alloc(32 * 1024 * 1024, 'x')

const behind: [string, Buffer][] = [
  ['an upgrade to h2c', requestBytes('GET', '/public/2', ['Connection: Upgrade', 'Upgrade: h2c'])],
  ['a WebSocket handshake', requestBytes('GET', '/socket', handshake)],
  ['a CONNECT', Buffer.from('CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n')],
]

/** Expects that the next response is a 400, and that the connection then ends. */
async function expectRefusedLast(connection: RawConnection): Promise<void> {
  const refusal = await connection.answer()
  expect([refusal?.status, refusal && value(refusal, 'x-peage-error')]).toEqual([400, 'request_invalid'])
  expect(await connection.endsWithin(2_000)).toBe(true)
  expect(connection.unread.length).toBe(0)
}

describe.each([
  ['HTTP', ''],
  ['TLS', tlsSettings(first.files)],
])('over %s', (_, tls) => {
  let upstream: Upstream
  let sockets: ScriptedUpstream
  let gateway: TestGateway
  let left: number
  beforeAll(async () => {
    upstream = await startUpstream()
    sockets = await startScriptedUpstream()
    gateway = await startGateway(
      `upstreams:
  app: { targets: ['${upstream.url}'] }
  sockets: { targets: ['${sockets.url}'] }
routes:
  - { path: /public/*, upstream: app, auth: none }
  - { path: /socket, upstream: sockets, websocket: true, auth: none }
  - { path: /guarded, upstream: sockets, websocket: true }
`,
      undefined,
      { server: `, timeouts: { body_idle: 1s }${tls}` },
    )
  })
  beforeEach(() => {
    left = 0
    upstream.answer = undefined
    sockets.script = socket => {
      socket.write(
        `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
      )
    }
  })
  afterAll(async () => {
    await gateway?.stop()
    await upstream?.close()
    await sockets?.close()
  })

  /** Makes the upstream begin its next response. @returns a function that completes the response */
  function begun(): Promise<() => void> {
    return new Promise(resolve => {
      upstream.answer = (_request, response) => {
        upstream.answer = undefined
        response.on('close', () => {
          if (!response.writableFinished) left += 1
        })
        response.writeHead(200, { 'content-length': 5 }).write('fi')
        resolve(() => response.end('rst'))
      }
    })
  }

  describe.each(behind)('%s behind a pending request', (_, bytes) => {
    it('is refused only after a large response to the earlier request has arrived completely', async () => {
      upstream.answer = (_request, response) => {
        upstream.answer = undefined
        response.end(large)
      }
      const connection = new RawConnection(gateway.url)
      connection.write(Buffer.concat([requestBytes('GET', '/public/1'), bytes]))
      const answer = await connection.answer('GET', 10_000)
      expect(answer?.body.length).toBe(large.length)
      await expectRefusedLast(connection)
      connection.close()
    })

    it('is refused only after the response to the pending request is complete, and never reaches an upstream', async () => {
      const [requests, heads] = [upstream.received.length, sockets.heads]
      const going = begun()
      const connection = new RawConnection(gateway.url)
      connection.write(Buffer.concat([requestBytes('GET', '/public/1'), bytes]))
      const goOn = await going
      await expect.poll(() => connection.unread.length).toBeGreaterThan(0)
      goOn()
      expect((await connection.answer())?.body.toString()).toBe('first')
      await expectRefusedLast(connection)
      expect([upstream.received.length, sockets.heads]).toEqual([requests, heads])
      connection.close()
    })

    it.each([
      ['ends', (connection: RawConnection) => connection.socket.end()],
      ['breaks', (connection: RawConnection) => connection.close()],
    ])(
      'is dropped when the client %s its connection, and the upstream connection is closed',
      async (_, leave) => {
        const going = begun()
        const connection = new RawConnection(gateway.url)
        connection.write(Buffer.concat([requestBytes('GET', '/public/1'), bytes, Buffer.from('early')]))
        await going
        await expect.poll(() => connection.unread.length).toBeGreaterThan(0)
        leave(connection)
        await expect.poll(() => left, { timeout: 700 }).toBe(1)
        connection.close()
      },
    )
  })

  it('a client that reads nothing is disconnected, even if an upgrade follows its request', async () => {
    upstream.answer = (_request, response) => {
      upstream.answer = undefined
      // The response is larger than all buffers between upstream and client, so it is never completed. So every close
      // means that the gateway has closed the connection.
      response.on('close', () => {
        left += 1
      })
      response.end(huge)
    }
    const connection = new RawConnection(gateway.url)
    connection.socket.pause()
    connection.write(Buffer.concat([requestBytes('GET', '/public/1'), behind[0]?.[1] as Buffer]))
    await expect.poll(() => left, { timeout: 4_000 }).toBe(1)
    connection.close()
  })

  it('a client that is still sending a body receives the refusal of its upgrade', async () => {
    const going = begun()
    const lines = ['Connection: Upgrade', 'Upgrade: h2c', `Content-Length: ${large.length}`]
    const connection = new RawConnection(gateway.url)
    connection.write(
      Buffer.concat([requestBytes('GET', '/public/1'), requestBytes('POST', '/public/2', lines)]),
    )
    const sent = connection.writeAll(large)
    const goOn = await going
    await expect.poll(() => connection.unread.length).toBeGreaterThan(0)
    goOn()
    expect(String((await connection.answer())?.body)).toBe('first')
    await expectRefusedLast(connection)
    await sent
    connection.close()
  })

  it('twenty upgrades to h2c on one connection leak no listeners', async () => {
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    const connection = new RawConnection(gateway.url)
    for (let count = 0; count < 20; count += 1) {
      connection.write(behind[0]?.[1] as Buffer)
      expect((await connection.answer())?.status).toBe(200)
    }
    process.off('warning', onWarning)
    expect(warnings).toEqual([])
    connection.close()
  })

  describe('bytes after a handshake', () => {
    it('do not prevent the gateway from noticing that the client leaves before the upstream responds', async () => {
      let ended = false
      sockets.script = socket =>
        socket.on('end', () => {
          ended = true
        })
      const heads = sockets.heads
      const connection = new RawConnection(gateway.url)
      connection.write(requestBytes('GET', '/socket', handshake, 'early'))
      await expect.poll(() => sockets.heads).toBe(heads + 1)
      connection.socket.end()
      await expect.poll(() => ended, { timeout: 700 }).toBe(true)
      connection.close()
    })

    it('reach the upstream before bytes that the client sends later', async () => {
      let heard = ''
      let goOn = () => {}
      sockets.script = socket => {
        socket.removeAllListeners('data')
        socket.on('data', chunk => {
          heard += chunk
        })
        goOn = () =>
          socket.write(
            `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
          )
      }
      const heads = sockets.heads
      const connection = new RawConnection(gateway.url)
      connection.write(requestBytes('GET', '/socket', handshake, 'one'))
      await expect.poll(() => sockets.heads).toBe(heads + 1)
      connection.write('two')
      await new Promise(resolve => setTimeout(resolve, 50))
      expect(heard).toBe('')
      goOn()
      expect((await connection.answer())?.status).toBe(101)
      connection.write('three')
      await expect.poll(() => heard).toBe('onetwothree')
      connection.close()
    })

    it('do not prevent the client from receiving the refusal of a guard, even if there are many bytes', async () => {
      const connection = new RawConnection(gateway.url)
      connection.write(requestBytes('GET', '/guarded', handshake, large.subarray(0, 1024 * 1024)))
      const sent = connection.writeAll(large)
      const answer = await connection.answer()
      expect([answer?.status, answer?.complete]).toEqual([401, true])
      expect(await connection.endsWithin(1_000)).toBe(true)
      await sent
      connection.close()
    })

    it('do not prevent a client that keeps sending from receiving the refusal of the upstream', async () => {
      const body = 'x'.repeat(3_000_000)
      sockets.script = socket =>
        socket.write(`HTTP/1.1 418 Teapot\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
      const connection = new RawConnection(gateway.url)
      connection.write(requestBytes('GET', '/socket', handshake, 'early'))
      let sent = 0
      const drip = setInterval(() => sent++ < 8 && connection.write('later'), 10)
      const answer = await connection.answer()
      expect([answer?.status, answer?.complete, answer?.body.length]).toEqual([418, true, body.length])
      expect(await connection.endsWithin(1_000)).toBe(true)
      clearInterval(drip)
      connection.close()
    })
  })
})

describe('a drain', () => {
  it.each(behind)(
    'ends at its timeout and closes the connection if %s still waits for an earlier request',
    async (_, bytes) => {
      const upstream = await startUpstream()
      upstream.answer = (_request, response) => response.writeHead(200).write('without end')
      const gateway = await startGateway(
        `upstreams: { app: { targets: ['${upstream.url}'] } }
routes: [{ path: /*, upstream: app, auth: none }]
`,
        undefined,
        { drainTimeout: '500ms' },
      )
      const connection = new RawConnection(gateway.url)
      connection.write(Buffer.concat([requestBytes('GET', '/1'), bytes]))
      await expect.poll(() => connection.unread.length).toBeGreaterThan(0)
      await gateway.stop()
      expect(await connection.endsWithin(500)).toBe(true)
      connection.close()
      await upstream.close()
    },
  )
})
