// A client sends a malformed request after other requests. It first gets the responses to the other requests. Then
// the malformed request is refused, and the connection ends.
import { beforeEach, describe, expect, it } from 'vitest'
import { first as certificate, tlsSettings } from '../support/certificates.ts'
import { newUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { embeddedSetup } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'
import { expectRefusal } from './invariants.ts'
import { ask, chunked, RawConnection, requestBytes, value } from './raw-client.ts'
import { stage } from './stage.ts'

const coding = 'Transfer-Encoding: chunked'
const post = (lines: string[], body: string | Buffer = 'World', target = '/public/bad') =>
  requestBytes('POST', target, lines, body)

/** Requests that llhttp refuses. Some are from the tests of llhttp (test/request/transfer-encoding.md). */
const malformed: [string, Buffer, code?: string][] = [
  ['chunked before another coding', post(['Transfer-Encoding: chunked, deflate'])],
  ['a second Transfer-Encoding', post([coding, 'Transfer-Encoding: deflate'])],
  ['an unknown coding', post(['Transfer-Encoding: pigeons'])],
  ['an unknown coding and a length', post(['Content-Length: 1', 'Transfer-Encoding: pigeons'])],
  ['chunked and a length', post(['Content-Length: 1', coding])],
  ['an empty coding and a length', post(['Content-Length: 1', 'Transfer-Encoding:'])],
  ['a folded coding', post(['Transfer-Encoding: chunked', '  abc'], '5\r\nWorld\r\n0\r\n\r\n')],
  ['a space after a chunk size', post([coding], '5 \r\nWorld\r\n0\r\n\r\n')],
  ['a chunk size that is too large', post([coding], '12345678901234567890\r\nWorld\r\n')],
  ['a chunk size without digits', post([coding], 'zz\r\n')],
  ['a chunk extension without a semicolon', post([coding], '2 erfrferferf\r\naa\r\n0\r\n\r\n')],
  ['a chunk extension with a control character', post([coding], '5;a=\0\r\nWorld\r\n0\r\n\r\n')],
  ['a chunk that is longer than its size', post([coding], '5\r\nWorld!\r\n0\r\n\r\n')],
  ['a bad chunk after a good chunk', post([coding], '5\r\nWorld\r\nzz\r\n')],
  ['an invalid trailer', post([coding], '5\r\nWorld\r\n0\r\nX\r\n\r\n')],
  ['an invalid length', post(['Content-Length: x'])],
  ['a header name with a space', requestBytes('GET', '/public/bad', ['X Y: 1'])],
  ['bytes that are not a request', Buffer.from('\0garbage\r\n\r\n')],
  ['a bad chunk to a guarded route', post([coding], 'zz\r\n', '/guarded')],
  ['a bad chunk to an endpoint of the gateway', post([coding], 'zz\r\n', '/api/v1/auth/login')],
  [
    'headers that are too large',
    requestBytes('GET', '/public/bad', [`X-Big: ${'x'.repeat(17_000)}`]),
    'headers_too_large',
  ],
  [
    'trailers that are too large',
    post([coding], `5\r\nWorld\r\n0\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`),
    'headers_too_large',
  ],
]

const get = requestBytes('GET', '/public/1')
const before: [string, Buffer, statuses: number[]][] = [
  ['a request', get, [200]],
  ['two requests', Buffer.concat([get, get]), [200, 200]],
  ['a request with a body', post(['Content-Length: 5'], 'hello', '/public/1'), [200]],
  ['a request with a chunked body', post([coding], chunked('hello'), '/public/1'), [200]],
  ['a refused request', requestBytes('GET', '/nowhere'), [404]],
  ['a refused request with a body', post(['Content-Length: 5'], 'hello', '/guarded'), [401]],
  ['a request to an endpoint of the gateway', requestBytes('GET', '/.well-known/jwks.json'), [200]],
]

/** Expects that the next response is the refusal, and that the connection then ends. */
async function expectLast(connection: RawConnection, code = 'request_invalid'): Promise<void> {
  const answer = await connection.answer()
  expectRefusal(answer, code)
  expect(answer && value(answer, 'connection')).toBe('close')
  expect(await connection.endsWithin(1_000)).toBe(true)
  expect(connection.unread.length).toBe(0)
  connection.close()
}

describe.each([
  ['HTTP', ''],
  ['TLS', tlsSettings(certificate.files)],
])('over %s', (_, tls) => {
  const at = gatewayBefore(
    startUpstream,
    url => `upstreams: { app: { targets: ['${url}'] } }
routes:
  - { path: /public/*, upstream: app, auth: none }
  - { path: /guarded, upstream: app }
`,
    { server: `, timeouts: { body_idle: 1s, headers: 2s }${tls}` },
  )
  beforeEach(() => {
    at.upstream.answer = undefined
  })

  /** Makes the upstream begin its next response with `part`. @returns a function that completes the response */
  function begun(part: string): Promise<() => void> {
    return new Promise(resolve => {
      at.upstream.answer = (_request, response) => {
        at.upstream.answer = undefined
        if (part !== '') response.writeHead(200, { 'content-length': 5 }).write(part)
        resolve(() => response.end('first'.slice(part.length)))
      }
    })
  }

  describe.each(malformed)('%s', (_, bytes, code) => {
    // The gateway waits before it ends a connection, so the tests run concurrently to save time.
    it.concurrent.each(before)('is refused if it follows %s', async (_, ahead, statuses) => {
      const connection = new RawConnection(at.gateway.url)
      connection.write(Buffer.concat([ahead, bytes]))
      for (const status of statuses) {
        const answer = await connection.answer()
        expect([answer?.status, answer?.complete]).toEqual([status, true])
      }
      await expectLast(connection, code)
      // Neither the malformed request nor an earlier refused request reached the upstream.
      expect(at.upstream.received.filter(({ url }) => url !== '/public/1')).toEqual([])
    })

    it.each([
      ['pending', ''],
      ['half sent', 'fi'],
    ])('waits for a previous response that is %s, and is then refused', async (_, part) => {
      const going = begun(part)
      const connection = new RawConnection(at.gateway.url)
      connection.write(Buffer.concat([get, bytes]))
      const goOn = await going
      if (part !== '') await expect.poll(() => connection.unread.length).toBeGreaterThan(0)
      goOn()
      expect((await connection.answer())?.body.toString()).toBe('first')
      await expectLast(connection, code)
    })
  })

  it('an incomplete head is refused after `timeouts.headers`, but not before the pending response is complete', async () => {
    const going = begun('fi')
    const connection = new RawConnection(at.gateway.url)
    connection.write(Buffer.concat([get, Buffer.from('GET /public/bad HTTP/1.1\r\nHo')]))
    const goOn = await going
    setTimeout(goOn, 2_500)
    expect((await connection.answer())?.body.toString()).toBe('first')
    await expectLast(connection)
  })

  it('if a body is malformed in the middle, the request is refused and its upstream connection is closed', async () => {
    let left = false
    const arrived = new Promise<void>(resolve => {
      at.upstream.answer = (request, response) => {
        if (request.url === '/public/1') response.end('first')
        else request.on('close', () => (left = true)).once('data', () => resolve())
      }
    })
    const connection = new RawConnection(at.gateway.url)
    connection.write(Buffer.concat([get, post([coding], '5\r\nWorld\r\n')]))
    expect((await connection.answer())?.status).toBe(200)
    await arrived
    connection.write('zz\r\n')
    await expectLast(connection)
    await expect.poll(() => left).toBe(true)
  })

  it('if the upstream responds after the refusal, its response is dropped', async () => {
    const arrived = new Promise<() => void>(resolve => {
      at.upstream.answer = (request, response) => {
        if (request.url === '/public/1') response.end('first')
        else request.on('error', () => {}).once('data', () => resolve(() => response.end('late')))
      }
    })
    const connection = new RawConnection(at.gateway.url)
    connection.write(Buffer.concat([get, post([coding], '5\r\nWorld\r\n')]))
    expect((await connection.answer())?.status).toBe(200)
    const respond = await arrived
    connection.write('zz\r\n')
    expectRefusal(await connection.answer(), 'request_invalid')
    respond()
    expect(await connection.endsWithin(1_000)).toBe(true)
    expect(connection.unread.length).toBe(0)
    connection.close()
  })

  it.each([
    ['by a guard', post([coding], '5\r\nWorld\r\n', '/guarded'), 401],
    ['by the upstream', post([coding], '5\r\nWorld\r\n', '/public/early'), 200],
    [
      'by an endpoint of the gateway',
      requestBytes('GET', '/.well-known/jwks.json', [coding], '5\r\nWorld\r\n'),
      200,
    ],
  ])(
    'after a response %s, a body that is malformed in the middle causes no second response',
    async (_, bytes, status) => {
      at.upstream.answer = (_request, response) => response.end('early')
      const connection = new RawConnection(at.gateway.url)
      connection.write(Buffer.concat([get, bytes]))
      expect((await connection.answer())?.status).toBe(200)
      const answer = await connection.answer()
      expect([answer?.status, answer?.complete]).toEqual([status, true])
      connection.write('zz\r\n')
      expect(await connection.endsWithin(1_000)).toBe(true)
      expect(connection.unread.length).toBe(0)
      connection.close()
    },
  )

  it('a client that keeps sending before it reads gets both responses completely', async () => {
    const large = Buffer.alloc(4 * 1024 * 1024, 'x')
    at.upstream.answer = (_request, response) => response.end(large)
    const connection = new RawConnection(at.gateway.url)
    connection.socket.pause()
    connection.write(Buffer.concat([get, post([coding], 'zz\r\n')]))
    // The client sends for 1 s. If it sent nothing, the gateway would stop reading after 500 ms.
    for (let sent = 0; sent < 20; sent += 1) {
      connection.write(Buffer.alloc(65_536, 'x'))
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    connection.socket.resume()
    const answer = await connection.answer('GET', 10_000)
    expect([answer?.complete, answer?.body.length]).toEqual([true, large.length])
    await expectLast(connection)
  })

  it('a client that reads nothing is disconnected, and the upstream connection is closed', async () => {
    let left = false
    at.upstream.answer = (_request, response) => {
      response.on('close', () => (left = true))
      response.end(Buffer.alloc(32 * 1024 * 1024, 'x'))
    }
    const connection = new RawConnection(at.gateway.url)
    connection.socket.pause()
    connection.write(Buffer.concat([get, post([coding], 'zz\r\n')]))
    await expect.poll(() => left, { timeout: 4_000 }).toBe(true)
    connection.close()
  })

  it('a client that keeps sending after the gateway has refused its request is disconnected', async () => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(Buffer.concat([get, post([coding], 'zz\r\n')]))
    const closed = new Promise<boolean>(resolve => connection.socket.once('close', () => resolve(true)))
    const sending = setInterval(() => connection.socket.writable && connection.write(Buffer.alloc(65_536)), 5)
    expect((await connection.answer())?.status).toBe(200)
    expectRefusal(await connection.answer(), 'request_invalid')
    expect(await closed).toBe(true)
    clearInterval(sending)
  })

  it('bytes after a request with Connection: close are ignored', async () => {
    const connection = new RawConnection(at.gateway.url)
    const last = requestBytes('GET', '/public/1', ['Connection: close'])
    connection.write(Buffer.concat([last, post([coding], 'zz\r\n')]))
    const answers = await connection.answers()
    expect(answers.map(answer => answer.status)).toEqual([200])
    expect(await connection.endsWithin(1_000)).toBe(true)
    connection.close()
  })
})

describe('a request that counts against the daily limit', () => {
  const at = stage(embeddedSetup, { more: '  - { path: /counted, upstream: app, free_daily: true }\n' })

  it('spends no daily use if it waits for an earlier response and its body is malformed', async () => {
    const user = await newUser(at.gateway)
    const lines = [`Authorization: Bearer ${user.access}`]
    let goOn = () => {}
    at.upstream.answer = (_request, response) => {
      at.upstream.answer = undefined
      goOn = () => response.end('first')
    }
    const connection = new RawConnection(at.gateway.url)
    connection.write(Buffer.concat([get, post([...lines, coding], 'zz\r\n', '/counted')]))
    await expect.poll(() => at.upstream.seen.length).toBe(1)
    goOn()
    expect((await connection.answer())?.body.toString()).toBe('first')
    await expectLast(connection)
    const use = () => ask(at.gateway.url, requestBytes('GET', '/counted', lines))
    expect((await use())?.status).toBe(200)
    expectRefusal(await use(), 'daily_limit_reached')
    expect(at.upstream.seen.map(({ url }) => url)).toEqual(['/public/1', '/counted'])
  })
  it.each([
    ['a bad chunk', [coding], 'zz\r\n'],
    ['a bad chunk after a good chunk', [coding], '5\r\nWorld\r\nzz\r\n'],
    ['a tab after its coding', ['Transfer-Encoding: chunked\t'], chunked('hello')],
  ])('spends no daily use if it arrives in one piece and has %s', async (_, framing, body) => {
    const user = await newUser(at.gateway)
    const lines = [`Authorization: Bearer ${user.access}`]
    const { status } = (await ask(at.gateway.url, post([...lines, ...framing], body, '/counted'))) ?? {}
    // Node 24 and later accept the tab after `chunked`, so the request may succeed.
    expect([200, 400]).toContain(status)
    const next = await ask(at.gateway.url, requestBytes('GET', '/counted', lines))
    expect(next?.status).toBe(status === 400 ? 200 : 429)
  })
})
