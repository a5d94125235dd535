// WebSocket handshakes must not bypass the guards (h2c smuggling, CVE-2021-21295, "websocket smuggling").
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newUser, type TestUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { accepted, handshake } from '../support/web-sockets.ts'
import { startScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { RawConnection, requestBytes, value } from './raw-client.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const switching = `HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accepted}\r\n\r\n`
const inner = 'GET /private HTTP/1.1\r\nHost: x\r\n\r\n'

describe('a WebSocket handshake', () => {
  let user: TestUser
  let heads: string[]
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app: { targets: ['${url}'] }
routes:
  - { name: open, path: /open, upstream: app, websocket: true, auth: none }
  - { name: guarded, path: /guarded, upstream: app, websocket: true }
  - { name: plain, path: /plain, upstream: app, auth: none }
  - { name: private, path: /private, upstream: app }
`,
  )
  beforeAll(async () => {
    user = await newUser(at.gateway)
  })
  beforeEach(() => {
    heads = []
    at.upstream.script = (socket, head) => {
      heads.push(head)
      socket.write(ok)
    }
  })

  const send = async (bytes: string | Buffer) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(bytes)
    const answers = await connection.answers()
    const hasEnded = connection.ended
    connection.close()
    return { answers, hasEnded }
  }
  const without = (name: string) => handshake.filter(line => !line.startsWith(`${name}:`))

  it.each([
    ['two keys', [...handshake, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']],
    ['two versions', [...handshake, 'Sec-WebSocket-Version: 8']],
    ['a length', [...handshake, 'Content-Length: 37']],
    ['a chunked body', [...handshake, 'Transfer-Encoding: chunked']],
  ])('with %s is refused, its connection is closed, and nothing reaches the upstream', async (_, lines) => {
    const { answers, hasEnded } = await send(requestBytes('GET', '/open', lines, inner))
    expect(answers.map(answer => [answer.status, value(answer, 'x-peage-error')])).toEqual([
      [400, 'request_invalid'],
    ])
    expect(JSON.parse(String(answers[0]?.body))).toEqual({ error: 'Requête invalide' })
    expect(hasEnded).toBe(true)
    expect(heads).toEqual([])
  })

  // Some versions of Node's parser treat these headers as an upgrade, others do not. Both behaviors are safe.
  it.each(['Upgrade\t', 'Upgrade\t, keep-alive', 'keep-alive, Upgrade\t', 'Upgrade\xa0'])(
    'with Connection: %j is either refused or opens a working WebSocket',
    async field => {
      const received: string[] = []
      at.upstream.script = socket => {
        socket.removeAllListeners('data')
        socket.on('data', chunk => received.push(String(chunk)))
        socket.write(switching)
      }
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('GET', '/open', [...without('Connection'), `Connection: ${field}`]))
      const { status } = (await connection.answer()) ?? {}
      if (status === 101) {
        connection.write(inner)
        await expect.poll(() => received).toEqual([inner])
      } else {
        expect(status).toBe(400)
        expect(received).toEqual([])
      }
      connection.close()
    },
  )

  it('is forwarded without the bytes that follow it, if the upstream refuses the upgrade', async () => {
    at.upstream.script = (socket, head) => {
      heads.push(head)
      socket.write('HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno')
    }
    const { answers, hasEnded } = await send(requestBytes('GET', '/open', handshake, inner))
    expect(answers.map(answer => answer.status)).toEqual([426])
    expect(hasEnded).toBe(true)
    // If the gateway had forwarded the bytes after the handshake, the upstream would read them before the next request.
    at.upstream.script = (socket, head) => {
      heads.push(head)
      socket.write(ok)
    }
    await send(requestBytes('GET', '/plain'))
    expect(heads.map(head => head.split(' ', 2)[1])).toEqual(['/open', '/plain'])
  })

  it('ends the connection if a guard refuses it, so later bytes are not read as a request', async () => {
    const { answers, hasEnded } = await send(requestBytes('GET', '/guarded', handshake, inner))
    expect(answers.map(answer => answer.status)).toEqual([401])
    expect(hasEnded).toBe(true)
    expect(heads).toEqual([])
  })

  it.each([
    ['h2c on a route with WebSockets', '/open', 'Upgrade: h2c'],
    ['h2c on a route without WebSockets', '/plain', 'Upgrade: h2c'],
    ['a WebSocket on a route without WebSockets', '/plain', 'Upgrade: websocket'],
    ['an unknown protocol', '/open', 'Upgrade: foo/2'],
  ])('for %s is a plain request, and later requests are still guarded', async (_, path, upgrade) => {
    const lines = [...without('Upgrade'), upgrade]
    const { answers } = await send(Buffer.concat([requestBytes('GET', path, lines), Buffer.from(inner)]))
    expect(answers.map(answer => answer.status)).toEqual([200, 401])
    expect(heads).toHaveLength(1)
    expect(heads[0]).not.toMatch(/\r\n(?:upgrade|http2-settings):/i)
  })

  it.each(['Trailer: X-Checksum', 'Content-Length: 5'])(
    'is accepted if the 101 of the upstream contains %s; the client does not receive this header',
    async field => {
      at.upstream.script = socket => socket.write(switching.replace(/\r\n$/, `${field}\r\n\r\n`))
      const { answers } = await send(requestBytes('GET', '/open', handshake))
      expect(answers.map(answer => answer.status)).toEqual([101])
      expect(answers[0]?.fields.map(([name]) => name)).not.toContain(field.split(':')[0]?.toLowerCase())
    },
  )

  describe('with a token among its subprotocols', () => {
    const ask = (...lines: string[]) => send(requestBytes('GET', '/guarded', [...handshake, ...lines]))
    const protocol = (...protocols: string[]) => `Sec-WebSocket-Protocol: ${protocols.join(', ')}`

    it('is accepted with one token, and the upstream receives the identity of the user', async () => {
      await ask(protocol('chat', `peage.bearer.${user.access}`))
      expect(heads[0]).toContain(`\r\nx-user-id: ${user.id}\r\n`)
      expect(heads[0]).toContain('\r\nSec-WebSocket-Protocol: chat\r\n')
      expect(heads[0]).not.toContain(user.access)
    })

    it('is refused as ambiguous if two separate headers each contain a token', async () => {
      const { answers } = await ask(...Array(2).fill(protocol(`peage.bearer.${user.access}`)))
      expect(answers.map(answer => value(answer, 'x-peage-error'))).toEqual(['credentials_ambiguous'])
      expect(heads).toEqual([])
    })

    it('is refused with an invalid token, an empty token or another spelling of the prefix', async () => {
      for (const entry of ['peage.bearer.no.such.token', 'peage.bearer.', `Peage.Bearer.${user.access}`]) {
        const { answers } = await ask(protocol(entry))
        expect(answers.map(answer => answer.status)).toEqual([401])
      }
      expect(heads).toEqual([])
    })

    it('never reveals the token to an upstream or in the log', async () => {
      for (const [path, ...lines] of [
        ['/open', protocol(`peage.bearer.${user.access}`)],
        ['/open', protocol('chat', `PEAGE.bearer.${user.access}`)],
        ['/open', `Sec_WebSocket_Protocol: peage.bearer.${user.access}`],
        ['/plain', protocol(`peage.bearer.${user.access}`)],
      ]) {
        await send(requestBytes('GET', String(path), [...handshake, ...lines]))
        await send(requestBytes('GET', String(path), lines))
      }
      expect(heads).toHaveLength(8)
      expect(heads.join('')).not.toContain(user.access)
      expect(at.gateway.log.join('')).not.toContain(user.access)
    })
  })

  it('reaches the upstream only with the identity of its user, even if it forges another identity', async () => {
    const forged = [
      'X-User-Id: 1',
      'x_user_id: 1',
      'X.User.Plan: pro',
      'X-Peage-Assertion: a',
      'X-User-Email: b@c',
    ]
    const named = ['Connection: Upgrade, X-User-Id', ...without('Connection')]
    for (const lines of [handshake, named]) {
      await send(requestBytes('GET', '/open', [...lines, ...forged]))
      await send(
        requestBytes('GET', '/guarded', [...lines, ...forged, `Authorization: Bearer ${user.access}`]),
      )
    }
    expect(heads).toHaveLength(4)
    const said = heads.map(head =>
      head.split('\r\n').filter(line => /^[^:]*(?:user.(?:id|plan|email)|assertion)/i.test(line)),
    )
    const own = [`x-user-id: ${user.id}`, 'x-user-plan: free']
    expect(said).toEqual([[], own, [], own])
  })
})
