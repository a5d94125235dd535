// Tests interim responses, trailers and transfer codings (RFC 9110 §15.2, §6.5.1; RFC 9112 §6.1).
import { beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { ask, RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startScriptedUpstream } from './scripted-upstream.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const chunks = '2\r\nok\r\n0\r\n'
const coded = (...lines: string[]) => ['HTTP/1.1 200 OK', ...lines, '', chunks, ''].join('\r\n')
const trailed = (...lines: string[]) =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}${lines.map(line => `${line}\r\n`).join('')}\r\n`

describe('unusual framing of responses', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app: { targets: ['${url}'], connections: 1, timeouts: { response: 2s, idle: 2s } }
  talkative: { targets: ['${url}'] }
routes:
  - { name: app, path: /app/*, upstream: app, auth: none }
  - { name: hints, path: /hints, upstream: talkative, auth: none }
  - { name: brief, path: /brief, upstream: app, auth: none, timeout: 400ms }
`,
  )
  // Each test starts with one open connection to the upstream. A new connection during the test shows that the gateway
  // no longer uses the first one.
  beforeEach(async () => {
    says(ok)
    expect((await send())?.status).toBe(200)
    at.upstream.heads = 0
    at.upstream.connections = 0
  })

  const says = (bytes: string) => {
    at.upstream.script = socket => socket.write(Buffer.from(bytes, 'latin1'))
  }
  /** Sends a POST, which is never retried because it is not idempotent. */
  const send = () => ask(at.gateway.url, requestBytes('POST', '/app/x', ['Content-Length: 0']))
  const next = async () => {
    says(ok)
    return (await send())?.body.toString()
  }

  it.each([
    ['one', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['several', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3)],
    ['one with fields', 'HTTP/1.1 100 Continue\r\nLink: </a>\r\nX-A: 1\r\n\r\n'],
    // After an HTTP/1.0 interim response, the gateway closes the connection and opens a new one.
    ['one before another interim response', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 100 Continue\r\n\r\n', 1],
  ])(
    'unrequested 100 responses are skipped, and the next request gets its own response: %s',
    async (_, interim, opened = 0) => {
      says(`${interim}${ok}`)
      const answer = await send()
      expect([answer?.status, answer?.body.toString()]).toEqual([200, 'ok'])
      expect(await next()).toBe('ok')
      expect([at.upstream.heads, at.upstream.connections]).toEqual([2, opened])
    },
  )

  it('Early Hints reach the client even after an unrequested 100', async () => {
    says(
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nConnection: close\r\nLink: </a>\r\n\r\n${ok}`,
    )
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/app/x'))
    const answers = [await connection.answer(), await connection.answer()]
    connection.close()
    expect(answers.map(answer => answer?.status)).toEqual([103, 200])
    expect(answers[0]?.fields).toEqual([['link', '</a>']])
  })

  it('if the upstream closes the connection after a 100, the client gets a 502, and the request is not sent again', async () => {
    at.upstream.script = socket => socket.end('HTTP/1.1 100 Continue\r\n\r\n')
    expectRefusal(await ask(at.gateway.url, requestBytes('GET', '/app/x')), 'upstream_unreachable')
    expect(at.upstream.heads).toBe(1)
    expect(await next()).toBe('ok')
  })

  it('if no final response follows a 100, the client gets a 504 after the response timeout', async () => {
    says('HTTP/1.1 100 Continue\r\n\r\n')
    expectRefusal(await send(), 'upstream_timeout')
    expect(at.upstream.heads).toBe(1)
    expect(await next()).toBe('ok')
  })

  it.each([
    ['GET', 102],
    ['GET', 103],
    ['POST', 102],
  ])(
    'a %s to an upstream that sends only interim responses with status %i gets a 504 after the response timeout',
    async (method, status) => {
      let ticks: NodeJS.Timeout | undefined
      at.upstream.script = socket => {
        ticks = setInterval(() => socket.write(`HTTP/1.1 ${status} Still Here\r\n\r\n`), 100)
        socket.on('close', () => clearInterval(ticks))
      }
      const started = performance.now()
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes(method, '/brief', [], method === 'POST' ? 'the end\r\n\r\n' : ''))
      let answer = await connection.answer()
      while (answer?.status === status) answer = await connection.answer()
      connection.close()
      clearInterval(ticks)
      expectRefusal(answer, 'upstream_timeout')
      expect(performance.now() - started).toBeLessThan(method === 'POST' ? 1_300 : 900)
      expect(await next()).toBe('ok')
    },
  )

  it('a slow client can miss interim responses, but never the final response', async () => {
    const hint = `HTTP/1.1 103 Early Hints\r\nLink: </${'a'.repeat(8_000)}>\r\n\r\n`
    const taken = new Promise<void>(resolve => {
      at.upstream.script = socket => socket.write(hint.repeat(3_000) + ok, () => resolve())
    })
    const connection = new RawConnection(at.gateway.url)
    connection.socket.pause()
    connection.write(requestBytes('GET', '/hints'))
    await taken
    connection.socket.resume()
    let hints = 0
    let answer = await connection.answer()
    for (; answer?.status === 103; hints += 1) answer = await connection.answer()
    connection.close()
    expect([answer?.status, answer?.body.toString()]).toEqual([200, 'ok'])
    expect(hints).toBeGreaterThan(0)
    expect(hints).toBeLessThan(3_000)
  })

  it('if the upstream responds to an upload with a 100, the 100 is skipped, and the complete body arrives', async () => {
    // The body ends with an empty line, like a request head. So `script` is called again, with the body as `head`.
    let body = ''
    at.upstream.script = (socket, head) => {
      if (head.startsWith('POST ')) socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      else {
        body = head
        socket.write(ok)
      }
    }
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/app/x', ['Content-Length: 11', 'Expect: 100-continue']))
    // The client receives only the 100 that the gateway itself sends.
    expect((await connection.answer())?.status).toBe(100)
    connection.write('the end\r\n\r\n')
    const answer = await connection.answer()
    connection.close()
    expect([answer?.status, body]).toEqual([200, 'the end'])
  })

  it.each([
    ['Connection: close', 'Connection: close'],
    ['Connection: keep-alive', 'Connection: keep-alive'],
    ['a Connection header that lists a field', 'Connection: close, X-A'],
    ['Keep-Alive', 'Keep-Alive: timeout=0, max=0'],
    ['Transfer-Encoding', 'Transfer-Encoding: gzip'],
    ['an upgrade', 'Connection: upgrade\r\nUpgrade: h2c'],
  ])('the trailer %s is ignored, and the next request uses the same connection', async (_, lines) => {
    for (let round = 0; round < 3; round += 1) {
      says(trailed(lines, 'X-A: kept'))
      const answer = await send()
      expect([answer?.status, answer?.body.toString(), answer?.complete]).toEqual([200, 'ok', true])
      expect(answer?.trailers).toEqual([['x-a', 'kept']])
    }
    expect(await next()).toBe('ok')
    expect([at.upstream.heads, at.upstream.connections]).toEqual([4, 0])
  })

  it('the gateway closes the connection after a response with Connection: close, even if a trailer contains Connection: keep-alive', async () => {
    says(trailed('Connection: keep-alive').replace('\r\n', '\r\nConnection: close\r\n'))
    expect((await send())?.body.toString()).toBe('ok')
    expect(await next()).toBe('ok')
    expect([at.upstream.heads, at.upstream.connections]).toEqual([2, 1])
  })

  it.each([
    [['Transfer-Encoding: gzip, chunked']],
    [['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: gzip']],
    [['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    [['Transfer-Encoding: chunked, chunked']],
    [['Transfer-Encoding: chunked, gzip']],
    [['Transfer-Encoding: chunked, identity']],
    [['Transfer-Encoding: chunked;q=1']],
    [['Transfer-Encoding: chunked\t']],
    [['Transfer-Encoding: gzip']],
    [['Transfer-Encoding: identity']],
    [['Transfer-Encoding: pigeons']],
    [['Transfer-Encoding:']],
    [['Transfer-Encoding: chunked', 'Content-Length: 2']],
    [['Content-Length: 2', 'Transfer-Encoding: gzip, chunked']],
  ])(
    'after a response with %j, the client gets a 502, the request is not sent again, and the connection is not used again',
    async lines => {
      says(coded(...lines))
      expectRefusal(await ask(at.gateway.url, requestBytes('GET', '/app/x')), 'upstream_unreachable')
      expect(at.upstream.heads).toBe(1)
      expect(await next()).toBe('ok')
      expect(at.upstream.connections).toBe(1)
      expect(at.gateway.log.filter(line => line.includes('"decision":"internal"'))).toEqual([])
    },
  )

  it.each(['chunked', 'Chunked', 'CHUNKED', ' chunked  '])(
    'a response with Transfer-Encoding: %j is relayed',
    async coding => {
      says(coded(`Transfer-Encoding:${coding}`))
      const answer = await send()
      expect([answer?.status, answer?.body.toString(), answer?.complete]).toEqual([200, 'ok', true])
      expect(value(answer as NonNullable<typeof answer>, 'transfer-encoding')).toBe('chunked')
      expect(await next()).toBe('ok')
      expect(at.upstream.connections).toBe(0)
    },
  )

  it('the gateway closes the connection after a chunked HTTP/1.0 response, even with Connection: keep-alive', async () => {
    says(coded('Connection: keep-alive', 'Transfer-Encoding: chunked').replace('1.1', '1.0'))
    expect((await send())?.body.toString()).toBe('ok')
    expect(await next()).toBe('ok')
    expect([at.upstream.heads, at.upstream.connections]).toEqual([2, 1])
  })

  it('the gateway reuses the connection after an HTTP/1.0 response with a length and Connection: keep-alive', async () => {
    says('HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok')
    expect((await send())?.body.toString()).toBe('ok')
    expect(await next()).toBe('ok')
    expect([at.upstream.heads, at.upstream.connections]).toEqual([2, 0])
  })
})
