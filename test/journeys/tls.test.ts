// The client listener behaves over HTTPS as it does over HTTP (`server.tls`).
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { chunked, RawConnection, requestBytes } from '../security/raw-client.ts'
import { first, tlsSettings } from '../support/certificates.ts'
import { startGateway } from '../support/gateway.ts'
import { journey, routes } from '../support/journey.ts'
import { embeddedSetup } from '../support/setups.ts'
import { startUpstream } from '../support/upstream.ts'

const timeouts = ', timeouts: { headers: 500ms, body_idle: 400ms, keep_alive: 600ms }'

/** Opens a TLS connection, which the caller must close. @throws if the handshake fails */
async function handshake(url: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const { hostname, port } = new URL(url)
  const socket = connectTls({ host: hostname, port: Number(port), ca: first.cert, ...options })
  await once(socket, 'secureConnect')
  return socket
}

/** Waits until the socket is closed. A reset of the connection also counts as closed. */
function closed(socket: Socket): Promise<void> {
  socket.on('error', () => {})
  return new Promise(resolve => socket.once('close', () => resolve()))
}

describe('the listener over TLS', () => {
  const at = journey(embeddedSetup, {
    server: timeouts + tlsSettings(first.files),
    auth: ", key_secret: 'a secret of tests'",
  })

  /** The log lines with level warn or higher. */
  const complaints = () => at.gateway.log.filter(line => JSON.parse(line).level >= 40)

  async function expectServed() {
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('GET', '/public/x'))
    expect((await connection.answer())?.status).toBe(200)
    connection.close()
  }

  it('has an https URL, and sends X-Forwarded-Proto: https to the upstream', async () => {
    expect(at.gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    await expectServed()
    expect(at.upstream.received[0]?.headers['x-forwarded-proto']).toBe('https')
  })

  it('sends a refusal to a client that has already closed its side of the connection', async () => {
    const connection = new RawConnection(at.gateway.url)
    const requestToNowhere = requestBytes('GET', '/nowhere')
    connection.socket.end(Buffer.concat([requestToNowhere, requestToNowhere, requestToNowhere]))
    expect((await connection.answer())?.status).toBe(404)
    connection.close()
  })

  it('presents a certificate that a client with the right CA accepts', async () => {
    const socket = await handshake(at.gateway.url)
    expect([socket.authorized, socket.getPeerCertificate().subject.CN]).toEqual([
      true,
      'peage test fixture (first)',
    ])
    socket.destroy()
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'supports %s, and selects HTTP/1.1 for a client that also offers HTTP/2',
    async version => {
      const socket = await handshake(at.gateway.url, {
        minVersion: version,
        maxVersion: version,
        ALPNProtocols: ['h2', 'http/1.1'],
      })
      expect([socket.getProtocol(), socket.alpnProtocol]).toEqual([version, 'http/1.1'])
      socket.destroy()
    },
  )

  it.each([
    ['TLS 1.1', { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const],
    ['a client that offers only HTTP/2', { ALPNProtocols: ['h2'] }],
  ])('refuses %s in the handshake', async (_, options) => {
    await expect(handshake(at.gateway.url, options)).rejects.toThrow(/alert/)
    expect(complaints()).toEqual([])
  })

  it.each([
    ['plain HTTP', requestBytes('GET', '/public/x')],
    ['bytes that are not TLS', Buffer.alloc(600, 0x2a)],
    ['an aborted handshake', Buffer.from('160301020001', 'hex')],
  ])(
    'closes the connection after %s without a response or a warning, and serves other clients',
    async (_, bytes) => {
      const { hostname, port } = new URL(at.gateway.url)
      const socket = connect(Number(port), hostname)
      let received = Buffer.alloc(0)
      socket.on('data', chunk => {
        received = Buffer.concat([received, chunk])
      })
      socket.on('error', () => {})
      socket.write(bytes)
      if (bytes.length < 10) socket.end()
      await closed(socket)
      expect(received.toString('latin1')).not.toContain('HTTP/')
      expect(complaints()).toEqual([])
      await expectServed()
    },
  )

  it.each([
    ['sends nothing', 0],
    ['sends its handshake byte by byte', 20],
  ])('after the headers timeout, closes the connection of a client that %s', async (_, pause) => {
    const { hostname, port } = new URL(at.gateway.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.resume()
    const begun = performance.now()
    // The header of the TLS record announces 16 KiB, so the handshake stays incomplete.
    const hello = Buffer.concat([Buffer.from('1603014000010003fc0303', 'hex'), Buffer.alloc(500)])
    let sent = 0
    const drip = pause > 0 ? setInterval(() => socket.write(hello.subarray(sent, ++sent)), pause) : undefined
    await closed(socket)
    clearInterval(drip)
    expect(performance.now() - begun).toBeLessThan(2_000)
  })

  it('closes a connection after its timeout if the head is slow, the body stalls or no request follows', async () => {
    const head = new RawConnection(at.gateway.url)
    head.write('GET /public/x HTTP/1.1\r\nX: ')
    const drip = setInterval(() => head.write('x'), 50)
    const body = new RawConnection(at.gateway.url)
    body.write(requestBytes('POST', '/public/x', ['Content-Length: 100'], 'a beginning'))
    const idle = new RawConnection(at.gateway.url)
    idle.write(requestBytes('GET', '/public/x'))
    expect((await idle.answer())?.status).toBe(200)
    expectRefusal(await body.answer(), 'request_invalid')
    expectRefusal(await head.answer(), 'request_invalid')
    clearInterval(drip)
    for (const connection of [head, body, idle]) {
      expect(await connection.endsWithin(4_000)).toBe(true)
      connection.close()
    }
  })

  it.each([
    [
      'Content-Length with chunked encoding',
      requestBytes(
        'POST',
        '/public/x',
        ['Content-Length: 5', 'Transfer-Encoding: chunked'],
        chunked('five!'),
      ),
      'request_invalid',
    ],
    ['bare line feeds', 'GET /public/x HTTP/1.1\nHost: gw.test\n\n', 'request_invalid'],
    [
      'headers that are too long',
      requestBytes('GET', '/public/x', [`X: ${'x'.repeat(20_000)}`]),
      'headers_too_large',
    ],
    [
      'Expect without a credential',
      requestBytes('POST', '/any/x', ['Content-Length: 5', 'Expect: 100-continue']),
      'token_invalid',
    ],
  ])('refuses %s with the matching error code and closes the connection', async (_, bytes, code) => {
    const connection = new RawConnection(at.gateway.url)
    connection.write(bytes)
    expectRefusal(await connection.answer(), code)
    expect(await connection.endsWithin(3_000)).toBe(true)
    connection.close()
    expect(at.upstream.received).toEqual([])
  })

  it('never treats bytes of a refused body as a request', async () => {
    const smuggled = 'GET /public/smuggled HTTP/1.1\r\nHost: gw.test\r\n\r\n'
    const connection = new RawConnection(at.gateway.url)
    connection.write(requestBytes('POST', '/any/x', [`Content-Length: ${smuggled.length}`], smuggled))
    connection.write(requestBytes('GET', '/public/after'))
    const statuses = [await connection.answer(), await connection.answer()].map(answer => answer?.status)
    expect(statuses).toEqual([401, 200])
    expect(at.upstream.received.map(seen => seen.url)).toEqual(['/public/after'])
    connection.close()
  })

  it('sends exactly one refusal to a client that is still sending', async () => {
    for (const bytes of [
      requestBytes('POST', '/public/x', ['Transfer-Encoding: chunked'], `5;${'x'.repeat(1_000_000)}`),
      requestBytes(
        'POST',
        '/public/x',
        ['Transfer-Encoding: identity'],
        requestBytes('GET', '/public/smuggled'),
      ),
    ]) {
      const connection = new RawConnection(at.gateway.url)
      await connection.writeAll(bytes)
      const answers = await connection.answers()
      expect(answers.map(answer => expectRefusal(answer))).toEqual(['request_invalid'])
      expect(await connection.endsWithin(1_000)).toBe(true)
      connection.close()
    }
  })
})

describe('a drain over TLS', () => {
  it('completes requests in flight, but does not wait for idle connections or incomplete handshakes', async () => {
    const { upstream, gateway } = await started()
    const { hostname, port } = new URL(gateway.url)
    const halfway = connect(Number(port), hostname)
    halfway.on('error', () => {})
    await once(halfway, 'connect')
    const silent = await handshake(gateway.url)
    const asking = new RawConnection(gateway.url)
    const arrived = new Promise<() => void>(resolve => {
      upstream.answer = (_, response) => resolve(() => response.end('late but whole'))
    })
    asking.write(requestBytes('GET', '/public/x'))
    const release = await arrived
    const begun = performance.now()
    const stopped = gateway.stop()
    await Promise.all([closed(halfway.resume()), closed(silent.resume())])
    release()
    expect((await asking.answer())?.body.toString()).toBe('late but whole')
    await stopped
    expect(performance.now() - begun).toBeLessThan(3_000)
    asking.close()
    await upstream.close()
  })

  async function started() {
    const upstream = await startUpstream()
    const server = tlsSettings(first.files)
    const gateway = await startGateway(routes(upstream.url), undefined, { server, drainTimeout: '10s' })
    return { upstream, gateway }
  }
})
