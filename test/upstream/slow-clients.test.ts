// If the limit per client is lower than the number of connections, a slow client cannot occupy all connections to a
// service. So requests of other clients still get a connection.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { expectRefusal } from '../security/invariants.ts'
import { RawConnection, requestBytes, value } from '../security/raw-client.ts'
import { newUser } from '../support/client.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type MortalUpstream, startMortal } from './mortal-upstream.ts'

/** Options of polls. The timeout is long, because the machine may be busy. */
const patiently = { timeout: 25_000 }

const large = 'Content-Length: 1000000'
const slow = '127.0.0.2'

describe('slow clients', () => {
  let service: MortalUpstream
  let other: MortalUpstream
  let gateway: TestGateway
  const open: RawConnection[] = []

  beforeAll(async () => {
    ;[service, other] = [await startMortal('service'), await startMortal('other')]
    gateway = await startGateway(`upstreams:
  app: { targets: ['${service.url}'] }
  few: { targets: ['${service.url}'], connections: 8, connections_per_client: 3, timeouts: { connect: 2s } }
  all: { targets: ['${service.url}'], connections: 2, connections_per_client: 2, timeouts: { connect: 200ms } }
  pair: { targets: ['${service.url}', '${other.url}'], connections: 8, connections_per_client: 3 }
routes:
  - { name: app, path: /app/*, upstream: app, auth: optional }
  - { name: few, path: /few/*, upstream: few, auth: optional, websocket: true }
  - { name: counted, path: /counted/*, upstream: few, free_daily: true }
  - { name: all, path: /all/*, upstream: all, auth: none }
  - { name: pair, path: /pair/*, upstream: pair, auth: none }
`)
  })
  /** Makes both services respond with their name. If the path ends in `/download`, the response never ends. */
  function answerAsUsual(): void {
    for (const one of [service, other]) {
      one.answer = (request, response) => {
        if (request.url?.endsWith('/download')) response.write(Buffer.alloc(1_000_000))
        else request.resume().on('end', () => response.end(one.name))
      }
    }
  }
  beforeEach(() => {
    for (const one of [service, other]) one.received.length = 0
    gateway.log.length = 0
    answerAsUsual()
  })
  afterEach(async () => {
    answerAsUsual()
    for (const connection of open.splice(0)) connection.close()
    // Waits until the connections of the slow client are free and no longer counted. The next test needs free
    // connections.
    for (const path of ['/app/x', '/few/x']) {
      await expect.poll(async () => (await get(path, { from: slow }))?.status, patiently).toBe(200)
    }
  })
  afterAll(async () => {
    await gateway?.stop()
    await Promise.all([service?.kill(), other?.kill()])
  })

  interface Caller {
    from?: string
    token?: string
  }

  const credentialOf = (token?: string) => (token === undefined ? [] : [`Authorization: Bearer ${token}`])
  const get = (path: string, { from, token }: Caller = {}) => {
    const connection = begin('GET', path, { from, token })
    return connection.answer().finally(() => connection.close())
  }
  function begin(
    method: string,
    path: string,
    { from, token }: { from?: string | undefined; token?: string | undefined },
    lines: string[] = [],
    body = '',
  ): RawConnection {
    const connection = new RawConnection(gateway.url, from)
    open.push(connection)
    // A paused socket acts like a client that reads very slowly.
    if (path.endsWith('/download')) connection.socket.pause()
    connection.write(requestBytes(method, path, [...credentialOf(token), ...lines], body))
    return connection
  }
  const refused = () => gateway.log.filter(line => line.includes('"decision":"rate_limited"')).length
  const many = (count: number, make: () => RawConnection) => Array.from({ length: count }, make)

  it.each([
    ['uploads from one address', () => begin('POST', '/app/upload', { from: slow }, [large], 'a')],
    [
      'chunked uploads from one address',
      () =>
        begin(
          'POST',
          '/app/upload',
          { from: slow },
          ['Transfer-Encoding: chunked'],
          `11170\r\n${'a'.repeat(70_000)}\r\n`,
        ),
    ],
    ['downloads to one address', () => begin('GET', '/app/download', { from: slow })],
  ])('140 slow %s leave connections for other clients', async (_, make) => {
    many(140, make)
    await expect.poll(refused, patiently).toBe(108)
    expect(service.received).toHaveLength(32)
    expect((await get('/app/x'))?.body.toString()).toBe('service')
    const user = await newUser(gateway)
    expect((await get('/app/x', { from: slow, token: user.access }))?.status).toBe(200)
    expectRefusal(await get('/app/x', { from: slow }), 'rate_limited')
  })

  it('140 slow requests of one user from many addresses leave connections for other users', async () => {
    const [user, honest] = [await newUser(gateway), await newUser(gateway)]
    let host = 2
    many(140, () => {
      host += 1
      return begin('POST', '/app/upload', { from: `127.0.0.${host}`, token: user.access }, [large], 'a')
    })
    await expect.poll(refused, patiently).toBe(108)
    expect(service.received).toHaveLength(32)
    expect((await get('/app/x', { token: honest.access }))?.status).toBe(200)
    expect((await get('/app/x'))?.status).toBe(200)
  })

  it('if a request exceeds the limit of its client, the refusal contains the limit and the time to wait before a retry', async () => {
    many(3, () => begin('GET', '/few/download', { from: slow }))
    await expect.poll(() => service.received.length, patiently).toBe(3)
    const answer = await get('/few/x', { from: slow })
    expectRefusal(answer, 'rate_limited')
    if (answer === undefined) throw new Error('no response')
    expect(['retry-after', 'ratelimit-policy', 'ratelimit'].map(name => value(answer, name))).toEqual([
      '1',
      '"connections";q=3;qu="concurrent-requests"',
      '"connections";r=0;t=1',
    ])
  })

  it('requests that wait for a connection count towards the limit of their client until they are refused', async () => {
    for (const host of [3, 4, 5]) many(3, () => begin('GET', '/few/download', { from: `127.0.0.${host}` }))
    await expect.poll(() => service.received.length, patiently).toBe(8)
    const answers = await Promise.all(
      many(5, () => begin('GET', '/few/x', { from: slow })).map(c => c.answer()),
    )
    expect(answers.map(answer => answer?.status).sort()).toEqual([429, 429, 503, 503, 503])
  })

  it('if the limit per client equals the number of connections, a further request waits for a connection and then gets a 503', async () => {
    many(2, () => begin('GET', '/all/download', { from: slow }))
    await expect.poll(() => service.received.length, patiently).toBe(2)
    expectRefusal(await get('/all/x', { from: slow }), 'upstream_unavailable')
  })

  it('the requests of a client are counted for each target separately', async () => {
    many(8, () => begin('GET', '/pair/download', { from: slow }))
    await expect.poll(refused, patiently).toBe(2)
    expect([service.received.length, other.received.length]).toEqual([3, 3])
  })

  it('concurrent requests that are refused are not counted as uses', async () => {
    const user = await newUser(gateway)
    const { access: token, id } = user
    const used = async () => {
      const [row] = await gateway.sql<{ daily_usage: number }>(
        'select daily_usage from users where id = $1',
        [id],
      )
      return row?.daily_usage
    }
    many(3, () => begin('GET', '/few/download', { token }))
    await expect.poll(() => service.received.length, patiently).toBe(3)
    const answers = await Promise.all(Array.from({ length: 5 }, () => get('/counted/x', { token })))
    for (const answer of answers) expectRefusal(answer, 'rate_limited')
    expect(await used()).toBe(0)
    for (const connection of open.splice(0)) connection.close()
    await expect.poll(async () => (await get('/counted/x', { token }))?.status, patiently).toBe(200)
    expect(await used()).toBe(1)
  })

  it('a request with Expect: 100-continue that exceeds the limit is refused without a 100', async () => {
    many(3, () => begin('GET', '/few/download', { from: slow }))
    await expect.poll(() => service.received.length, patiently).toBe(3)
    const lines = ['Content-Length: 5', 'Expect: 100-continue']
    expectRefusal(await begin('POST', '/few/x', { from: slow }, lines).answer(), 'rate_limited')
  })

  it('an open WebSocket does not count towards the limit, because it occupies no connection of the pool', async () => {
    const lines = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
    const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
    const accept =
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n'
    service.answer = request => request.socket.write(accept)
    for (let i = 0; i < 5; i += 1) {
      const answer = await begin('GET', '/few/socket', { from: slow }, [...lines, key]).answer()
      expect(answer?.status).toBe(101)
    }
  })

  describe('a small body', () => {
    it.each([
      ['with a length', ['Content-Length: 5'], 'fi', 've!'],
      ['in chunks', ['Transfer-Encoding: chunked'], '2\r\nfi\r\n', '3\r\nve!\r\n0\r\n\r\n'],
    ])('%s is read completely before its request occupies a connection', async (_, lines, first, rest) => {
      const connections = many(12, () => begin('POST', '/few/x', { from: slow }, lines, first))
      await new Promise(resolve => setTimeout(resolve, 300))
      expect(service.received).toHaveLength(0)
      expect((await get('/few/x', { from: slow }))?.status).toBe(200)
      for (const connection of connections.slice(0, 3)) connection.write(rest)
      for (const connection of connections.slice(0, 3)) expect((await connection.answer())?.status).toBe(200)
    })

    it('has at most 64 KiB', async () => {
      const size = 65_536
      begin('POST', '/few/x', { from: slow }, [`Content-Length: ${size}`], 'a'.repeat(size - 1))
      begin('POST', '/few/larger', { from: slow }, [`Content-Length: ${size + 1}`], 'a'.repeat(size))
      await expect.poll(() => service.received.map(({ url }) => url), patiently).toEqual(['/few/larger'])
      await new Promise(resolve => setTimeout(resolve, 100))
      expect(service.received).toHaveLength(1)
    })

    it('is forwarded while it arrives if it is chunked and does not end within a second', async () => {
      service.answer = (request, response) => {
        response.writeHead(200)
        request.on('data', chunk => response.write(`echo ${chunk}`)).on('end', () => response.end())
      }
      const connection = begin('POST', '/few/x', {}, ['Transfer-Encoding: chunked'], '2\r\nfi\r\n')
      await expect.poll(() => connection.unread.toString(), patiently).toContain('echo fi')
      connection.write('3\r\nve!\r\n0\r\n\r\n')
      expect((await connection.answer())?.body.toString()).toBe('echo fiecho ve!')
    })

    it('reaches no service if its client leaves before the end of the body', async () => {
      const lines = ['Content-Length: 5', 'Expect: 100-continue']
      const connection = begin('POST', '/few/x', { from: slow }, lines)
      expect((await connection.answer())?.status).toBe(100)
      connection.close()
      await expect
        .poll(() => gateway.log.filter(line => line.includes('"outcome":"client_gone"')).length, patiently)
        .toBeGreaterThan(0)
      expect(service.received).toHaveLength(0)
    })
  })
})
