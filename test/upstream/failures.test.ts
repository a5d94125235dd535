// If an upstream fails, the client receives a refusal without the upstream's address. If the response head was already
// sent to the client, the gateway closes the connection of the client.
import { beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { ask, type RawAnswer, RawConnection, requestBytes } from '../security/raw-client.ts'
import { call, newUser } from '../support/client.ts'
import { gatewayBefore } from '../support/gateway-before.ts'
import { startScriptedUpstream } from './scripted-upstream.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

describe('failing upstreams', () => {
  const at = gatewayBefore(
    startScriptedUpstream,
    url => `upstreams:
  app: { targets: ['${url}'], timeouts: { response: 400ms, idle: 400ms, connect: 300ms } }
  down: { targets: ['http://127.0.0.1:1'] }
  unknown: { targets: ['http://nobody.invalid:80'], resolve: false }
  unresolved: { targets: ['http://nobody.invalid:80'] }
  # An address of the documentation range (RFC 5737): no machine answers.
  deaf: { targets: ['http://192.0.2.1:80'], timeouts: { connect: 300ms } }
  narrow: { targets: ['${url}'], connections: 1, timeouts: { connect: 300ms, response: 5s } }
routes:
  - { name: app, path: /app/*, upstream: app, auth: none }
  - { name: patient, path: /patient, upstream: app, auth: none, timeout: 3s }
  - { name: down, path: /down, upstream: down, auth: none }
  - { name: unknown, path: /unknown, upstream: unknown, auth: none }
  - { name: unresolved, path: /unresolved, upstream: unresolved, auth: none }
  - { name: deaf, path: /deaf, upstream: deaf, auth: none }
  - { name: narrow, path: /narrow, upstream: narrow, auth: none }
  - { name: narrow-counted, path: /narrow-counted, upstream: narrow, free_daily: true }
`,
  )
  beforeEach(() => {
    at.upstream.heads = 0
  })

  const get = (path: string) => ask(at.gateway.url, requestBytes('GET', path))
  const says = (bytes: string, andEnds = false) => {
    at.upstream.script = socket => {
      if (andEnds) socket.end(Buffer.from(bytes, 'latin1'))
      else socket.write(Buffer.from(bytes, 'latin1'))
    }
  }

  /** Checks that a response contains neither the upstream's address nor an error message of the HTTP library. */
  function expectNoAddress(answer: RawAnswer | undefined): void {
    const said = JSON.stringify([answer?.fields, answer?.body.toString()])
    expect(said).not.toMatch(/127\.0\.0\.1|localhost|invalid:|ECONN|ENOTFOUND|undici|Error:|node_modules/)
  }

  it.each([
    ['that is down', '/down', 'upstream_unreachable'],
    ['whose name cannot be resolved for a new connection', '/unknown', 'upstream_unreachable'],
    ['that does not accept connections', '/deaf', 'upstream_unreachable'],
    ['whose name was never resolved', '/unresolved', 'upstream_unavailable'],
  ])('a request to an upstream %s is refused within the connect timeout', async (_, path, code) => {
    const start = performance.now()
    for (const method of ['GET', 'POST']) {
      const lines = method === 'POST' ? ['Content-Length: 5'] : []
      const answer = await ask(
        at.gateway.url,
        requestBytes(method, path, lines, method === 'POST' ? 'five!' : ''),
      )
      expectRefusal(answer, code)
      expectNoAddress(answer)
    }
    expect(performance.now() - start).toBeLessThan(4_000)
  })

  it('a target whose name was never resolved is listed as unresolved and unhealthy', async () => {
    const token = at.gateway.adminToken
    const { text } = await call(at.gateway.admin, 'GET', '/admin/v1/routes', { token })
    expect(text).toContain('"http://nobody.invalid (unresolved)"')
    expect((await call(at.gateway.admin, 'GET', '/metrics')).text).toContain(
      'peage_upstream_healthy{upstream="unresolved",target="http://nobody.invalid (unresolved)"} 0',
    )
  })

  it('if the upstream closes the connection without a response, a GET is sent twice and a POST once; then the client gets a 502', async () => {
    says('', true)
    const answer = await get('/app/x')
    expectRefusal(answer, 'upstream_unreachable')
    expectNoAddress(answer)
    expect(at.upstream.heads).toBe(2)
    expectRefusal(
      await ask(at.gateway.url, requestBytes('POST', '/app/x', ['Content-Length: 0'])),
      'upstream_unreachable',
    )
    expect(at.upstream.heads).toBe(3)
  })

  it('the timeout of a route replaces the response timeout of its upstream', async () => {
    at.upstream.script = socket => setTimeout(() => socket.write(ok), 900)
    expect((await get('/patient'))?.status).toBe(200)
  })

  it('the response timeout starts when the request body has been sent', async () => {
    at.upstream.script = () => {}
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/app/upload', ['Content-Length: 8']))
    for (const byte of 'slow do!') {
      connection.write(byte)
      await new Promise(resolve => setTimeout(resolve, 120))
    }
    expectRefusal(await connection.answer(), 'upstream_timeout')
    connection.close()
  })

  it.each([
    ['half a response head', 'HTTP/1.1 200 OK\r\nContent-Le', true],
    ['a protocol other than HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', false],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n', false],
    ['a response without a status code', 'HTTP/1.1 OK\r\n\r\n', false],
    ['an invalid Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nok', false],
    [
      'a response with two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!',
      false,
    ],
    ['a space in a field name', 'HTTP/1.1 200 OK\r\nX A: 1\r\nContent-Length: 2\r\n\r\nok', false],
    [
      'a byte over 0x7F in a field name',
      'HTTP/1.1 200 OK\r\nX-\xe9: 1\r\nContent-Length: 2\r\n\r\nok',
      false,
    ],
    ['a NUL in a field', 'HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 2\r\n\r\nok', false],
    [
      'fields of 100 KiB',
      `HTTP/1.1 200 OK\r\nX-A: ${'a'.repeat(102_400)}\r\nContent-Length: 2\r\n\r\nok`,
      false,
    ],
    [
      'a 101 to a request without an upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n',
      false,
    ],
  ])('if the upstream sends %s, the client gets a 502', async (_, bytes, andEnds) => {
    says(bytes, andEnds)
    const answer = await get('/app/x')
    expectRefusal(answer, 'upstream_unreachable')
    expectNoAddress(answer)
    expect(at.upstream.heads).toBe(1)
  })

  it.each([
    ['a control character in a field', 'HTTP/1.1 200 OK\r\nX-A: a\x01b\r\nContent-Length: 2\r\n\r\nok'],
    ['DEL in a field', 'HTTP/1.1 200 OK\r\nX-A: a\x7fb\r\nContent-Length: 2\r\n\r\nok'],
    ['a control character in the reason', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok'],
    ['a bare LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
    ['a status of 999', 'HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok'],
    ['a status of 000', 'HTTP/1.1 000 Odd\r\nContent-Length: 2\r\n\r\nok'],
    ['an empty field name', 'HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 2\r\n\r\nok'],
    ['a 204 with a body', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok'],
    [
      'a trailer with a control character',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: a\x01\r\n\r\n',
    ],
    [
      'a Content-Length among the trailers',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n',
    ],
  ])(
    'if the upstream sends %s, the response is relayed, cut off or replaced by a 502, without an internal error',
    async (_, bytes) => {
      says(bytes)
      const answer = await get('/app/x')
      if (answer?.status === 502) expectRefusal(answer, 'upstream_unreachable')
      expect([undefined, 200, 204, 502, 999]).toContain(answer?.status)
      says(ok)
      expect((await get('/app/after'))?.body.toString()).toBe('ok')
      expect(at.gateway.log.filter(line => line.includes('"decision":"internal"'))).toEqual([])
    },
  )

  it.each([
    ['a reset', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', 'reset'],
    ['an end before the declared length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', 'end'],
    [
      'an end before the last chunk',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
      'end',
    ],
    ['an invalid chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n', 'stay'],
    ['a stall', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', 'stay'],
  ])(
    'after %s in the middle of a response, the gateway closes the client’s connection, so the response never looks complete',
    async (_, bytes, then) => {
      at.upstream.script = socket => {
        socket.write(bytes, () =>
          setTimeout(() => {
            if (then === 'reset') socket.resetAndDestroy()
            if (then === 'end') socket.end()
          }, 50),
        )
      }
      const connection = new RawConnection(at.gateway.url)
      connection.write(requestBytes('GET', '/app/x'))
      const answer = await connection.answer()
      expect([answer?.status, answer?.body.toString(), answer?.complete]).toEqual([200, 'half', false])
      expect(await connection.endsWithin(1_000)).toBe(true)
      connection.close()
      await expect.poll(() => at.gateway.log.at(-1)).toContain('"outcome":"broken"')
    },
  )

  it('bytes after the declared length are neither sent to the client nor used for the next response', async () => {
    says('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged')
    for (let i = 0; i < 3; i++) expect((await get('/app/x'))?.body.toString()).toBe('ok')
  })

  /** Sends a request that occupies the only connection of the upstream `narrow`. */
  async function holdConnection(): Promise<RawConnection> {
    says('')
    const holder = new RawConnection(at.gateway.url)
    holder.write(requestBytes('GET', '/narrow'))
    await expect.poll(() => at.upstream.heads).toBe(1)
    return holder
  }

  it('if every connection stays busy, a request waits until the connect timeout and then gets a 503', async () => {
    const holder = await holdConnection()
    const start = performance.now()
    expectRefusal(await get('/narrow'), 'upstream_unavailable')
    expect(performance.now() - start).toBeGreaterThan(250)
    expect(performance.now() - start).toBeLessThan(2_000)
    holder.close()
    says(ok)
    expect((await get('/narrow'))?.status).toBe(200)
    // The upstream has received the first and the last request. So the refused request was not sent later either.
    expect(at.upstream.heads).toBe(2)
  })

  it('a waiting request is counted only when it gets the connection; if its user has no uses left, it gets a 429 and releases the connection', async () => {
    const { access } = await newUser(at.gateway)
    const holder = await holdConnection()
    const waiting = Promise.all(
      Array.from({ length: 8 }, () => call(at.gateway.url, 'GET', '/narrow-counted', { token: access })),
    )
    await new Promise(resolve => setTimeout(resolve, 100))
    says(ok)
    holder.close()
    const statuses = (await waiting).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, ...Array(7).fill(429)])
    expect((await get('/narrow'))?.status).toBe(200)
  })

  it('a waiting request is never sent if its client leaves', async () => {
    const holder = await holdConnection()
    const waiting = new RawConnection(at.gateway.url)
    waiting.write(requestBytes('GET', '/narrow'))
    await new Promise(resolve => setTimeout(resolve, 50))
    waiting.close()
    await new Promise(resolve => setTimeout(resolve, 50))
    holder.close()
    says(ok)
    expect((await get('/narrow'))?.status).toBe(200)
    expect(at.upstream.heads).toBe(2)
  })
})
