// The guards check a WebSocket handshake like any request. The gateway sends 101 only after the upstream has sent 101.
import { createHash, randomBytes } from 'node:crypto'
import { request } from 'node:https'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { first, tlsSettings } from '../support/certificates.ts'
import { newUser, type TestUser } from '../support/client.ts'
import { startGateway } from '../support/gateway.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { accepted, handshake, openWebSocket, startWebSocketUpstream } from '../support/web-sockets.ts'
import { startScriptedUpstream } from '../upstream/scripted-upstream.ts'

const routes = (upstream: string) => `upstreams:
  app: { targets: ['${upstream}'], timeouts: { response: 500ms, idle: 1s } }
  patient: { targets: ['${upstream}'] }
  nobody: { targets: ['http://127.0.0.1:1'] }
routes:
  - { name: chat, path: /chat/*, upstream: app, websocket: true, strip_prefix: /chat }
  - { name: pro, path: /pro, upstream: app, websocket: true, plans: [pro] }
  - { name: counted, path: /counted, upstream: app, websocket: true, free_daily: true }
  - { name: open, path: /open, upstream: app, websocket: true, auth: none }
  - { name: patient, path: /patient, upstream: patient, websocket: true, auth: none }
  - { name: plain, path: /plain, upstream: app, auth: none }
  - { name: down, path: /down, upstream: nobody, websocket: true, auth: none }
`

describe('a WebSocket', () => {
  let user: TestUser
  const at = gatewayBefore(startWebSocketUpstream, routes)
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })
  beforeEach(() => {
    at.upstream.handshakes.length = 0
    at.upstream.requests.length = 0
    at.upstream.closed.length = 0
    at.upstream.refuse = undefined
    at.upstream.onOpen = undefined
    at.upstream.answer = undefined
  })

  const shake = async (path: string, lines: readonly string[] = [], more = '') => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', path, [...handshake, ...lines], more))
    const answer = await connection.answer()
    return { connection, answer }
  }
  const refused = async (path: string, lines: readonly string[] = []) => {
    const { connection, answer } = await shake(path, lines)
    expect(await connection.endsWithin(1_000)).toBe(true)
    connection.close()
    if (answer === undefined) throw new Error('no answer')
    const { error } = JSON.parse(answer.body.toString())
    expect(value(answer, 'x-request-id')).toBeDefined()
    expect(value(answer, 'connection')).toBe('close')
    return [answer.status, value(answer, 'x-peage-error'), error]
  }
  const bearer = () => `Authorization: Bearer ${user.access}`

  it('reaches the upstream with the identity of its user, and carries messages in both directions', async () => {
    const { socket, next } = await openWebSocket(`${at.gateway.url}/chat/room?x=1`, { token: user.access })
    socket.send('hello')
    expect(await next()).toBe('hello')
    const [seen] = at.upstream.handshakes
    expect(seen?.url).toBe('/room?x=1')
    expect(seen?.headers).toMatchObject({
      'x-user-id': String(user.id),
      'x-user-plan': 'free',
      'x-forwarded-prefix': '/chat',
      upgrade: 'websocket',
      connection: 'upgrade',
      via: '1.1 peage',
    })
    expect(seen?.headers.authorization).toBeUndefined()
    socket.close(1000)
    await expect.poll(() => at.upstream.closed).toEqual([{ code: 1000 }])
  })

  it('gets the headers of the upstream’s 101 response, except hop-by-hop headers and reserved headers', async () => {
    at.upstream.refuse = socket => {
      socket.write(
        'HTTP/1.1 101 Fine\r\nUpgrade: WebSocket\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nX-Peage-Error: no\r\n' +
          `Sec-WebSocket-Accept: ${accepted}\r\nSet-Cookie: a=1\r\nContent-Length: 7\r\n\r\n`,
      )
    }
    const { connection, answer } = await shake('/open', ['X-Request-Id: abc'])
    connection.close()
    expect(answer?.status).toBe(101)
    const fields = (answer?.fields ?? []).filter(([name]) => name !== 'date')
    expect(fields.sort()).toEqual([
      ['connection', 'Upgrade'],
      ['sec-websocket-accept', accepted],
      ['set-cookie', 'a=1'],
      ['upgrade', 'websocket'],
      ['via', '1.1 peage'],
      ['x-request-id', 'abc'],
    ])
  })

  it('is refused by the guards with a JSON response like any request, before the upstream is contacted', async () => {
    expect(await refused('/chat/x')).toEqual([401, 'token_invalid', 'Token invalide ou expiré'])
    expect(await refused('/chat/x', ['Authorization: Bearer no.such.token'])).toEqual([
      401,
      'token_invalid',
      'Token invalide ou expiré',
    ])
    expect(await refused('/pro', [bearer()])).toEqual([403, 'plan_insufficient', 'Plan insuffisant'])
    expect(at.upstream.handshakes).toEqual([])
  })

  it('counts as a daily use, so a second handshake of a free user on the same day is refused', async () => {
    const { socket } = await openWebSocket(`${at.gateway.url}/counted`, { token: user.access })
    socket.close()
    const [status, code] = await refused('/counted', [bearer()])
    expect([status, code]).toEqual([429, 'daily_limit_reached'])
    expect(at.upstream.handshakes).toHaveLength(1)
  })

  it('can carry its bearer token in a subprotocol, and this subprotocol is never forwarded or logged', async () => {
    const { socket } = await openWebSocket(`${at.gateway.url}/chat/x`, {
      protocols: [`peage.bearer.${user.access}`, 'chat'],
    })
    expect(socket.protocol).toBe('chat')
    const [seen] = at.upstream.handshakes
    expect(seen?.headers['x-user-id']).toBe(String(user.id))
    expect(seen?.headers['sec-websocket-protocol']).toBe('chat')
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain(user.access)
    socket.close()
    await expect.poll(() => at.gateway.log.some(line => line.includes('"status":101'))).toBe(true)
    expect(at.gateway.log.join('')).not.toContain(user.access)
  })

  it('is opened with the bearer subprotocol if the client offers no other, because browsers require a selected subprotocol', async () => {
    const only = `peage.bearer.${user.access}`
    const { socket } = await openWebSocket(`${at.gateway.url}/chat/x`, { protocols: [only] })
    expect(socket.protocol).toBe(only)
    expect(at.upstream.handshakes[0]?.headers['sec-websocket-protocol']).toBeUndefined()
    socket.close()
  })

  it('gets the response of the upstream unchanged if the upstream refuses the handshake', async () => {
    const body = 'x'.repeat(3_000_000)
    at.upstream.refuse = socket => {
      socket.end(`HTTP/1.1 418 Teapot\r\nX-Why: tea\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    }
    const { connection, answer } = await shake('/open')
    expect([answer?.status, answer?.reason, answer && value(answer, 'x-why')]).toEqual([418, 'Teapot', 'tea'])
    expect(answer?.body.toString() === body).toBe(true)
    expect(answer && value(answer, 'x-peage-error')).toBeUndefined()
    expect(await connection.endsWithin(1_000)).toBe(true)
    connection.close()
  })

  it('gets 502 if the upstream is down, and 504 if the upstream is slow, but never 101', async () => {
    expect(await refused('/down')).toEqual([502, 'upstream_unreachable', 'Service amont injoignable'])
    at.upstream.refuse = () => {}
    expect(await refused('/open')).toEqual([504, 'upstream_timeout', 'Délai du service amont dépassé'])
    at.upstream.refuse = socket => socket.destroy()
    expect((await refused('/open'))[0]).toBe(502)
  })

  it.each([
    ['the accept value of another key', 'websocket', `Sec-WebSocket-Accept: ${'A'.repeat(27)}=`],
    ['no accept value', 'websocket', 'X: y'],
    [
      'a subprotocol that was not offered',
      'websocket',
      `Sec-WebSocket-Accept: ${accepted}\r\nSec-WebSocket-Protocol: soap`,
    ],
    ['another protocol', 'h2c', `Sec-WebSocket-Accept: ${accepted}`],
  ])('gets 502 if the upstream responds with a 101 that has %s', async (_, protocol, line) => {
    at.upstream.refuse = socket => {
      socket.write(`HTTP/1.1 101 x\r\nUpgrade: ${protocol}\r\nConnection: Upgrade\r\n${line}\r\n\r\n`)
    }
    expect((await refused('/open')).slice(0, 2)).toEqual([502, 'upstream_unreachable'])
  })

  it('does not count towards the limit `connections` once it is open; a handshake that exceeds the limit waits, then gets 503', async () => {
    const silent = await startScriptedUpstream()
    silent.script = () => {}
    const narrow = await startGateway(`upstreams:
  app: { targets: ['${at.upstream.url}'], connections: 1, timeouts: { connect: 200ms } }
  silent: { targets: ['${silent.url}'], connections: 1, timeouts: { connect: 200ms } }
routes:
  - { path: /open, upstream: app, websocket: true, auth: none }
  - { path: /silent, upstream: silent, websocket: true, auth: none }
`)
    const opened = []
    for (let i = 0; i < 3; i++) opened.push(await openWebSocket(`${narrow.url}/open`))
    for (const { socket } of opened) socket.terminate()
    const waiting = new RawConnection(narrow.url)
    waiting.write(requestBytes('GET', '/silent', handshake))
    await expect.poll(() => silent.heads).toBe(1)
    const other = new RawConnection(narrow.url)
    other.write(requestBytes('GET', '/silent', handshake))
    const answer = await other.answer()
    expect([answer?.status, answer && value(answer, 'x-peage-error')]).toEqual([503, 'upstream_unavailable'])
    waiting.close()
    other.close()
    await narrow.stop()
    await silent.close()
  })

  it('carries large messages and fragmented messages completely, with or without compression', async () => {
    // The test uses /patient, because its idle timeout is longer than on /open (1 s). Compressing the largest message
    // may take more than 1 s.
    const options = { maxPayload: 2 ** 27 }
    const { socket, closed } = await openWebSocket(`${at.gateway.url}/patient`, { options })
    expect(socket.extensions).toContain('permessage-deflate')
    const digest = (data: Buffer) => createHash('sha256').update(data).digest('hex')
    const heard = () => {
      const message = new Promise<string>(resolve =>
        socket.once('message', data => resolve(digest(data as Buffer))),
      )
      return Promise.race([message, closed])
    }
    for (const size of [1, 125, 126, 65_535, 65_536, 5_000_000]) {
      const message = randomBytes(size)
      const back = heard()
      socket.send(message)
      expect(await back).toBe(digest(message))
    }
    const parts = Array.from({ length: 20 }, () => randomBytes(70_000))
    const back = heard()
    for (const [index, part] of parts.entries()) socket.send(part, { fin: index === parts.length - 1 })
    expect(await back).toBe(digest(Buffer.concat(parts)))
    socket.close()
  })

  it('pauses the upstream while the client does not read', async () => {
    let sent = 0
    at.upstream.onOpen = socket => {
      const chunk = Buffer.alloc(65_536)
      const more = () => {
        sent += chunk.length
        if (socket.readyState === socket.OPEN && sent < 512 * 1024 * 1024) {
          socket.send(chunk, { compress: false }, () => setImmediate(more))
        }
      }
      more()
    }
    const { connection } = await shake('/open')
    connection.socket.pause()
    let last = -1
    await expect
      .poll(
        () => {
          const isStill = sent === last
          last = sent
          return isStill
        },
        { interval: 200 },
      )
      .toBe(true)
    // The upstream must stop before it has sent 64 MiB. This limit is generous, because data also fills the kernel
    // buffers of four sockets, and these buffers grow.
    expect(sent).toBeLessThan(64 * 1024 * 1024)
    connection.close()
  })

  it('forwards a half-close, and the other side can still send data', async () => {
    at.upstream.refuse = socket => {
      socket.write(
        `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`,
      )
      socket.on('end', () => socket.end(Buffer.from([0x81, 2, 0x6f, 0x6b])))
      socket.resume()
    }
    const { connection } = await shake('/open')
    connection.socket.end()
    expect(await connection.endsWithin(1_000)).toBe(true)
    expect(connection.unread.toString('hex')).toBe('81026f6b')
    connection.close()
  })

  it('is closed on one side if the connection of the other side breaks', async () => {
    const { closed } = await openWebSocket(`${at.gateway.url}/open`)
    at.upstream.sockets.at(-1)?.terminate()
    expect((await closed).code).toBe(1006)
    const { socket } = await openWebSocket(`${at.gateway.url}/open`)
    socket.terminate()
    await expect.poll(() => at.upstream.closed.at(-1)).toEqual({ code: 1006 })
  })

  it('is closed with 1001 if no byte arrives within `timeouts.idle`', async () => {
    const started = performance.now()
    const { closed } = await openWebSocket(`${at.gateway.url}/open`)
    const { code, at: closedAt } = await closed
    expect(code).toBe(1001)
    expect(closedAt - started).toBeGreaterThan(950)
    expect(closedAt - started).toBeLessThan(2_000)
    await expect.poll(() => at.upstream.closed).toContainEqual({ code: 1001 })
  })

  it('is logged in one line when it ends', async () => {
    at.gateway.log.length = 0
    const { socket, closed } = await openWebSocket(`${at.gateway.url}/chat/logged`, { token: user.access })
    await new Promise(resolve => setTimeout(resolve, 100))
    expect(at.gateway.log).toEqual([])
    socket.close()
    await closed
    await expect.poll(() => at.gateway.log.length).toBe(1)
    const line = JSON.parse(at.gateway.log[0] as string)
    expect(line).toMatchObject({
      route: 'chat',
      status: 101,
      user_id: user.id,
      decision: 'forwarded',
      outcome: 'complete',
    })
    expect(line.duration_ms).toBeGreaterThan(90)
  })

  it('is handled as a plain request on a route without `websocket`, and the connection stays open', async () => {
    const connection = new RawConnection(at.gateway.url)
    for (const lines of [
      handshake,
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AA'],
    ]) {
      connection.write(requestBytes('GET', '/plain', lines))
      const answer = await connection.answer()
      expect([answer?.status, answer?.body.toString()]).toEqual([200, 'plain'])
    }
    connection.close()
    expect(at.upstream.handshakes).toEqual([])
    // A route with `websocket` also accepts plain requests.
    expect(await (await fetch(`${at.gateway.url}/open`)).text()).toBe('plain')
    expect(
      at.upstream.requests.slice(0, 2).map(({ headers }) => [headers.upgrade, headers['http2-settings']]),
    ).toEqual([
      [undefined, undefined],
      [undefined, undefined],
    ])
  })

  it('is also closed on the upstream side if the client disconnects during the handshake', async () => {
    let ended = false
    at.upstream.refuse = socket => {
      socket.on('end', () => {
        ended = true
      })
      socket.resume()
    }
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/open', handshake))
    await expect.poll(() => at.upstream.handshakes.length).toBe(1)
    connection.socket.end()
    await expect.poll(() => ended, { timeout: 400 }).toBe(true)
    connection.close()
  })
})

describe('a drain', () => {
  it('closes WebSockets with 1001 on both sides at once', async () => {
    const upstream = await startWebSocketUpstream()
    const gateway = await startGateway(routes(upstream.url), undefined, { drainTimeout: '10s' })
    const { closed } = await openWebSocket(`${gateway.url}/open`)
    const started = performance.now()
    await gateway.stop()
    expect(performance.now() - started).toBeLessThan(3_000)
    expect((await closed).code).toBe(1001)
    expect(upstream.closed).toEqual([{ code: 1001 }])
    await upstream.close()
  })
})

describe('over TLS', () => {
  it('WebSockets and requests with `Upgrade: h2c` work in the same way as without TLS', async () => {
    const upstream = await startWebSocketUpstream()
    const gateway = await startGateway(routes(upstream.url), undefined, { server: tlsSettings(first.files) })
    const { socket, next, closed } = await openWebSocket(`${gateway.url}/open`, {
      options: { rejectUnauthorized: false },
    })
    socket.send('hello')
    expect(await next()).toBe('hello')
    expect(upstream.handshakes[0]?.headers['x-forwarded-proto']).toBe('https')
    const status = await new Promise(resolve => {
      const headers = { connection: 'Upgrade', upgrade: 'h2c' }
      request(`${gateway.url}/plain`, { headers, rejectUnauthorized: false }, answer => {
        resolve(answer.statusCode)
        answer.resume()
      }).end()
    })
    expect(status).toBe(200)
    await gateway.stop()
    expect((await closed).code).toBe(1001)
    await upstream.close()
  })
})
