// The request log has one JSON line per request, with the bytes sent, the host, the upstream and the user.
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { toFixed3 } from '../../src/proxy/access-log.ts'
import { ask, RawConnection, requestBytes } from '../security/raw-client.ts'
import { first, tlsSettings } from '../support/certificates.ts'
import { call, newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { handshake, startWebSocketUpstream, type WebSocketUpstream } from '../support/web-sockets.ts'

type Line = Record<string, unknown>

/** A loopback port on which nothing listens. */
const nowhere = 'http://127.0.0.1:1'

describe('the request log', () => {
  let upstream: Upstream
  let socketUpstream: WebSocketUpstream
  let plain: TestGateway
  let secure: TestGateway
  beforeAll(async () => {
    upstream = await startUpstream()
    socketUpstream = await startWebSocketUpstream()
    const routing = `upstreams:
  app: { targets: ['${upstream.url}'] }
  down: { targets: ['${nowhere}'] }
  half: { targets: ['${nowhere}', '${upstream.url}'] }
  sockets: { targets: ['${socketUpstream.url}'] }
routes:
  - { name: public, path: /public/*, upstream: app, auth: none }
  - { name: mine, path: /mine/*, upstream: app }
  - { name: down, path: /down/*, upstream: down, auth: none }
  - { name: half, path: /half/*, upstream: half, auth: none }
  - { name: socket, path: /socket, upstream: sockets, auth: none, websocket: true }
`
    plain = await startGateway(routing)
    secure = await startGateway(routing, undefined, { server: tlsSettings(first.files) })
  })
  afterEach(() => {
    upstream.answer = undefined
  })
  afterAll(async () => {
    await plain?.stop()
    await secure?.stop()
    await upstream?.close()
    await socketUpstream?.close()
  })

  /** Waits until `count` requests have been logged since the last call, and returns their lines. */
  async function lines(gateway: TestGateway, count: number): Promise<Line[]> {
    const read = () =>
      gateway.log.map(line => JSON.parse(line) as Line).filter(({ msg }) => msg === 'request')
    await expect.poll(() => read().length).toBe(count)
    const found = read()
    gateway.log.length = 0
    return found
  }
  async function lineOf(bytes: Buffer): Promise<Line> {
    plain.log.length = 0
    await ask(plain.url, bytes)
    return (await lines(plain, 1))[0] ?? expect.unreachable()
  }

  it('contains the method, path, status, client, decision and outcome of a request', async () => {
    const line = await lineOf(requestBytes('GET', '/public/a?secret=1', ['X-Request-Id: an-id']))
    const { time, duration_ms, bytes_sent, upstream_duration_ms, ...rest } = line
    expect(rest).toEqual({
      level: 30,
      request_id: 'an-id',
      route: 'public',
      decision: 'forwarded',
      outcome: 'complete',
      method: 'GET',
      path: '/public/a',
      status: 200,
      client: '127.0.0.1',
      host: 'gw.test',
      upstream_target: upstream.url,
      msg: 'request',
    })
    expect(duration_ms).toBeGreaterThan(0)
    expect(upstream_duration_ms).toBeGreaterThan(0)
    expect(upstream_duration_ms).toBeLessThanOrEqual(Number(duration_ms))
    expect(bytes_sent).toBeGreaterThan(100)
    expect(String(time)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(Math.abs(Date.parse(String(time)) - Date.now())).toBeLessThan(5_000)
  })

  it.each([
    [0.0004, '0.000'],
    [0.0307, '0.031'],
    [12.05, '12.050'],
    [999.9996, '1000.000'],
    [3_600_000.123, '3600000.123'],
  ])('writes a duration of %f ms as %s', (duration, text) => expect(toFixed3(duration)).toBe(text))

  it('contains the user ID of an admitted request; for a request without credentials, it contains only the error code', async () => {
    const user = await newUser(plain)
    const admitted = await lineOf(requestBytes('GET', '/mine/a', [`Authorization: Bearer ${user.access}`]))
    const refused = await lineOf(requestBytes('GET', '/mine/a'))
    expect([admitted.user_id, admitted.decision, admitted.route]).toEqual([user.id, 'forwarded', 'mine'])
    expect([refused.user_id, refused.decision, refused.status]).toEqual([undefined, 'token_invalid', 401])
  })

  it.each(['/public/"', '/nowhere/"},{"level":60', '/public/\\'])(
    'writes one line of JSON for a request with the path %j',
    async target => {
      const { path, msg } = await lineOf(requestBytes('GET', target))
      expect([path, msg]).toEqual([target, 'request'])
    },
  )

  it.each(['plain', 'secure'])(
    'counts the bytes of each response and its head, even if one %s connection carries several responses',
    async which => {
      const gateway = which === 'plain' ? plain : secure
      gateway.log.length = 0
      const connection = new RawConnection(gateway.url)
      let received = 0
      connection.socket.on('data', chunk => {
        received += chunk.length
      })
      const requests = [
        requestBytes('GET', '/public/a'),
        requestBytes('GET', '/mine/a'),
        requestBytes('HEAD', '/public/a'),
        requestBytes('POST', '/api/v1/auth/logout', ['Content-Length: 2', 'Expect: 100-continue'], '{}'),
        requestBytes('GET', '/.well-known/jwks.json'),
      ]
      const sizes: number[] = []
      for (const request of requests) {
        const before = received
        connection.write(request)
        await connection.finalAnswer(request.toString().slice(0, 4).trim())
        sizes.push(received - before)
      }
      expect((await lines(gateway, requests.length)).map(line => line.bytes_sent)).toEqual(sizes)

      const before = received
      connection.write(Buffer.concat([...requests, requestBytes('GET', '/nowhere', ['Connection: close'])]))
      await once(connection.socket, 'end')
      const logged = await lines(gateway, requests.length + 1)
      const sum = logged.reduce((all, line) => all + Number(line.bytes_sent), 0)
      expect(sum).toBe(received - before)
      connection.close()
    },
  )

  it('counts the bytes that were sent before the client disconnected, or 0 if no response had begun', async () => {
    upstream.answer = (_request, response) => {
      response.write('x'.repeat(100_000))
    }
    plain.log.length = 0
    const reading = new RawConnection(plain.url)
    reading.write(requestBytes('GET', '/public/a'))
    await once(reading.socket, 'data')
    reading.close()
    const [left] = await lines(plain, 1)
    expect(left).toMatchObject({ outcome: 'client_gone', upstream_target: upstream.url })
    expect(left?.bytes_sent).toBeGreaterThan(100)

    let attempts = 0
    upstream.answer = () => {
      attempts += 1
    }
    const waiting = new RawConnection(plain.url)
    waiting.write(requestBytes('GET', '/public/a'))
    await expect.poll(() => attempts).toBe(1)
    waiting.close()
    const [unanswered] = await lines(plain, 1)
    expect(unanswered).toMatchObject({ outcome: 'client_gone', bytes_sent: 0 })
    expect(unanswered).not.toHaveProperty('status')
  })

  it('contains the URL of the target that responded, and the time until its response head arrived', async () => {
    upstream.answer = (_request, response) => {
      setTimeout(() => {
        response.writeHead(200).flushHeaders()
        setTimeout(() => response.end('x'), 150)
      }, 40)
    }
    for (const path of ['/public/a', '/half/a', '/half/a']) {
      const line = await lineOf(requestBytes('GET', path))
      expect(line).toMatchObject({ status: 200, upstream_target: upstream.url })
      const [upstreams, all] = [Number(line.upstream_duration_ms), Number(line.duration_ms)]
      expect(upstreams).toBeGreaterThan(35)
      expect(all - upstreams).toBeGreaterThan(50)
    }
  })

  it('contains the target even if it is unreachable, but no target if the request was not forwarded', async () => {
    expect(await lineOf(requestBytes('GET', '/down/a'))).toMatchObject({
      decision: 'upstream_unreachable',
      upstream_target: nowhere,
      upstream_duration_ms: expect.any(Number),
    })
    for (const path of ['/mine/a', '/elsewhere', '/.well-known/jwks.json']) {
      const line = await lineOf(requestBytes('GET', path))
      expect(Object.keys(line).filter(name => name.startsWith('upstream'))).toEqual([])
    }
  })

  it.each([
    ['a name with its port', 'API.example.com:8443', 'API.example.com:8443'],
    ['text that would end the string', '"},{"level":60,"a":"', '"},{"level":60,"a":"'],
    ['a backslash', 'a\\u0022', 'a\\u0022'],
    ['text outside ASCII', 'h\u00e9', 'h\u00e9'],
    ['9,000 characters', 'x'.repeat(9_000), 'x'.repeat(260)],
    ['an empty host (omitted)', '', undefined],
  ])(
    'writes the host of a request as one JSON string of at most 260 characters: %s',
    async (_, sent, written) => {
      const line = await lineOf(requestBytes('GET', '/public/a', [`Host: ${sent}`]))
      expect([line.host, line.msg, line.level]).toEqual([written, 'request', 30])
    },
  )

  it('counts all bytes that the gateway sent to the client of a WebSocket', async () => {
    plain.log.length = 0
    const connection = new RawConnection(plain.url)
    connection.write(requestBytes('GET', '/socket', handshake))
    expect((await connection.answer())?.status).toBe(101)
    socketUpstream.sockets[0]?.send('x'.repeat(70_000))
    await expect.poll(() => connection.unread.length).toBeGreaterThan(70_000)
    connection.socket.end()
    const [line] = await lines(plain, 1)
    expect(line).toMatchObject({ status: 101, upstream_target: socketUpstream.url })
    expect(line?.bytes_sent).toBe(connection.socket.bytesRead)
    connection.close()
  })

  it('for register, login, refresh and logout, contains the user ID only if the operation succeeds', async () => {
    const account = { email: 'logged@example.com', password: 'correct horse battery' }
    const auth = async (name: string, body: object) => {
      plain.log.length = 0
      const answer = await call(plain.url, 'POST', `/api/v1/auth/${name}`, { body })
      const [line] = await lines(plain, 1)
      return { answer, line }
    }
    const registered = await auth('register', account)
    const id = registered.answer.body.user_id
    const opened = await auth('login', account)
    const refreshed = await auth('refresh', { refresh_token: opened.answer.body.refresh_token })
    const last = { refresh_token: refreshed.answer.body.refresh_token }
    const ended = await auth('logout', last)
    expect([registered, opened, refreshed, ended].map(({ line }) => line?.user_id)).toEqual([id, id, id, id])
    for (const { answer } of [opened, refreshed])
      expect(Object.keys(answer.body)).toEqual(['access_token', 'refresh_token', 'token_type', 'plan'])

    for (const [name, body] of [
      ['register', account],
      ['login', { ...account, password: 'wrong' }],
      ['refresh', last],
      ['logout', last],
      ['logout', {}],
    ] as const) {
      const { line } = await auth(name, body)
      expect([name, line?.user_id, line?.route]).toEqual([name, undefined, `/api/v1/auth/${name}`])
    }
  })
})
