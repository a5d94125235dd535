// Tests that requests with the header `Upgrade` arrive unchanged, with or without other requests before them, however
// the bytes are split.
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHttpServer } from '../../src/http/http-server.ts'
import { isIdle, responseClosed, whenWritable } from '../../src/http/pipelining.ts'
import { detachSocket, routeUpgrades } from '../../src/http/upgrade.ts'
import { chunked, RawConnection, requestBytes } from '../security/raw-client.ts'
import { first } from '../support/certificates.ts'
import { listen } from '../support/upstream.ts'
import { handshake } from '../support/web-sockets.ts'
import { sizes, turns, writePieces } from './pieces.ts'

const seed = 20_261_122
const timeouts = { headers: 60_000, body_idle: 60_000, keep_alive: 60_000 }

interface Plain {
  body: 'none' | 'declared' | 'chunked'
  /**
   * The value of the header `Upgrade`. It names a protocol other than WebSocket, so the gateway handles the request as
   * an ordinary request.
   */
  upgrade: string | undefined
  field: string
  /** The number of turns of the event loop that the handler waits before it responds. */
  turnsTaken: number
}
const latin1 = fc.integer({ min: 0x80, max: 0xff }).map(code => String.fromCharCode(code))
const plain: fc.Arbitrary<Plain> = fc.record({
  body: fc.constantFrom('none', 'declared', 'chunked'),
  upgrade: fc.constantFrom(undefined, 'h2c', 'TLS/1.0'),
  field: fc.string({ unit: latin1, minLength: 1, maxLength: 5 }),
  turnsTaken: fc.nat(4),
})
const behind = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map(bytes => Buffer.from(bytes)),
  fc.constant(requestBytes('GET', '/smuggled')),
)
const conversation = fc.record({
  before: fc.array(plain, { maxLength: 4 }),
  last: fc.constantFrom('accepted', 'refused', 'none'),
  turnsTaken: fc.nat(4),
  behind,
  sizes,
})

/** Returns header lines with unusual letter cases, so that a test can see whether they arrive unchanged. */
function linesOf({ body, upgrade, field }: Plain, name: string): string[] {
  return [
    ...(upgrade === undefined ? [] : ['conneCTION: upgrade', `upGRADE: ${upgrade}`]),
    ...(body === 'declared' ? [`Content-LENGTH: ${name.length}`] : []),
    ...(body === 'chunked' ? ['Transfer-Encoding: chunked'] : []),
    `X-Same: ${field}`,
    'x-same: 2',
  ]
}

function bytesOf(plain: Plain, name: string): Buffer {
  const { body } = plain
  const content = body === 'none' ? '' : body === 'declared' ? name : chunked(name)
  return requestBytes(body === 'none' ? 'GET' : 'POST', name, linesOf(plain, name), content)
}

/** Returns the request as the handler must receive it. */
function seenOf(plain: Plain, name: string) {
  const lines = ['Host: gw.test', ...linesOf(plain, name)].filter(line => !line.startsWith('upGRADE'))
  return {
    method: plain.body === 'none' ? 'GET' : 'POST',
    url: name,
    rawHeaders: lines.flatMap(line => line.split(': ')),
    body: plain.body === 'none' ? '' : name,
  }
}

describe('a request with the header `Upgrade`', () => {
  let server: Server
  let url: string
  let handleUpgrade: (request: IncomingMessage, response: ServerResponse) => void
  let turnsOf = new Map<string, number>()
  let begun: string[]
  let closed: string[]
  /** Handlers wait for this promise before they respond. */
  let held: Promise<void>
  beforeAll(async () => {
    server = createHttpServer({ timeouts, tls: undefined, isIdle }, (request, response) => {
      whenWritable(request, response, () => {
        begun.push(request.url ?? '')
        response.on('close', () => {
          closed.push(request.url ?? '')
          responseClosed(response)
        })
        if (request.url === '/socket') handleUpgrade(request, response)
        else void echo(request, response)
      })
    })
    routeUpgrades(server, request => request.headers.upgrade === 'websocket', { language: () => 'fr' })
    url = await listen(server)
  })
  beforeEach(clear)
  afterAll(() => {
    server.closeAllConnections()
    server.close()
  })

  function clear(): void {
    begun = []
    closed = []
    held = Promise.resolve()
    turnsOf = new Map()
  }

  async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url, rawHeaders } = request
    let body = ''
    for await (const chunk of request) body += chunk
    await held
    await turns(turnsOf.get(url ?? '') ?? 0)
    response.end(JSON.stringify({ method, url, rawHeaders, body }))
  }

  function accept(response: ServerResponse): void {
    response.writeHead(101, { connection: 'Upgrade', upgrade: 'websocket' }).flushHeaders()
    const socket = detachSocket(response)
    socket.on('data', chunk => socket.write(chunk)).on('end', () => socket.end())
    socket.resume()
  }

  /**
   * Waits until the server has emitted `close` for the named requests. The client may notice the end of a request
   * before the server emits this event.
   */
  async function expectClosed(names: string[]): Promise<void> {
    const deadline = performance.now() + 5_000
    while (closed.length < names.length && performance.now() < deadline) await turns(1)
    expect(closed).toEqual(names)
  }

  async function received(connection: RawConnection, length: number): Promise<Buffer> {
    const deadline = performance.now() + 5_000
    while (connection.unread.length < length && performance.now() < deadline) await turns(1)
    return connection.unread
  }

  it('arrives unchanged, and so do all bytes before and after it, however the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async ({ before, last, turnsTaken, behind, sizes }) => {
        clear()
        handleUpgrade = async (_request, response) => {
          await turns(turnsTaken)
          if (last === 'accepted') accept(response)
          else response.writeHead(403, { 'content-length': 2 }).end('no')
        }
        const named = before.map((plain, index): [string, Plain] => [`/${index}`, plain])
        for (const [name, { turnsTaken }] of named) turnsOf.set(name, turnsTaken)
        const connection = new RawConnection(url)
        for (const [name, plain] of named) {
          await writePieces(connection, bytesOf(plain, name), sizes)
          const answer = await connection.answer()
          expect(JSON.parse(String(answer?.body))).toEqual(seenOf(plain, name))
        }
        if (last !== 'none') {
          const bytes = Buffer.concat([requestBytes('GET', '/socket', handshake), behind])
          await writePieces(connection, bytes, sizes)
        }
        if (last === 'accepted') {
          expect((await connection.answer())?.status).toBe(101)
          const later = Buffer.from('later')
          connection.write(later)
          const whole = Buffer.concat([behind, later])
          expect((await received(connection, whole.length)).equals(whole)).toBe(true)
          connection.socket.end()
        } else if (last === 'refused') expect((await connection.answer())?.status).toBe(403)
        if (last !== 'none') {
          expect(await connection.endsWithin(5_000)).toBe(true)
          expect(connection.unread.length).toBe(last === 'accepted' ? behind.length + 5 : 0)
        }
        connection.close()
        const names = named.map(([name]) => name)
        if (last !== 'none') names.push('/socket')
        expect(begun).toEqual(names)
        await expectClosed(names)
      }),
      { seed, numRuns: 150 },
    )
  })

  it('is refused if an earlier request has no response yet, and all earlier requests get their responses in order', async () => {
    const unanswered = fc.record({
      before: fc.array(plain, { minLength: 1, maxLength: 4 }),
      upgrade: fc.constantFrom('h2c', 'websocket'),
      behind,
      sizes,
    })
    await fc.assert(
      fc.asyncProperty(unanswered, async ({ before, upgrade, behind, sizes }) => {
        clear()
        const named = before.map((plain, index): [string, Plain] => [
          `/${index}`,
          { ...plain, upgrade: undefined },
        ])
        let answerAll = () => {}
        held = new Promise(resolve => {
          answerAll = resolve
        })
        const lines = upgrade === 'h2c' ? ['Connection: Upgrade', 'Upgrade: h2c'] : handshake
        const connection = new RawConnection(url)
        const all = named.map(([name, plain]) => bytesOf(plain, name))
        const bytes = Buffer.concat([...all, requestBytes('GET', '/socket', lines), behind])
        await writePieces(connection, bytes, sizes)
        await turns(5)
        answerAll()
        for (const [name, plain] of named) {
          const answer = await connection.answer()
          expect(JSON.parse(String(answer?.body))).toEqual(seenOf(plain, name))
        }
        expect((await connection.answer())?.status).toBe(400)
        expect(await connection.endsWithin(5_000)).toBe(true)
        expect(connection.unread.length).toBe(0)
        connection.close()
        expect(begun).toEqual(named.map(([name]) => name))
      }),
      { seed, numRuns: 100 },
    )
  })

  it('may have a long body, which arrives completely', async () => {
    const body = 'x'.repeat(2 * 1024 * 1024)
    const lines = ['Connection: Upgrade', 'Upgrade: h2c', `Content-Length: ${body.length}`]
    const connection = new RawConnection(url)
    connection.write(requestBytes('POST', '/1', lines, body))
    const seen = JSON.parse(String((await connection.answer())?.body))
    expect(seen.body === body).toBe(true)
    connection.close()
  })

  it.each([
    [65_000, true],
    [70_000, false],
  ])(
    'gets a 101 response only if at most 64 KiB arrive before this response (%i bytes: %s)',
    async (length, isAnswered) => {
      let goOn = () => {}
      handleUpgrade = (_request, response) => {
        goOn = () => accept(response)
      }
      const connection = new RawConnection(url)
      connection.write(requestBytes('GET', '/socket', handshake))
      const early = Buffer.alloc(length, 'early')
      await connection.writeAll(early, 10_000)
      if (isAnswered) {
        await turns(20)
        goOn()
        expect((await connection.answer())?.status).toBe(101)
        // After the 101 response, the limit for early bytes no longer applies.
        await connection.writeAll(early, 10_000)
        const whole = Buffer.concat([early, early])
        expect((await received(connection, whole.length)).equals(whole)).toBe(true)
      } else expect(await connection.endsWithin(5_000)).toBe(true)
      connection.close()
    },
  )

  it('ends immediately if the client ends its side of the connection before the 101 response', async () => {
    handleUpgrade = () => connection.socket.end()
    const connection = new RawConnection(url)
    connection.write(requestBytes('GET', '/socket', handshake))
    expect(await connection.endsWithin(5_000)).toBe(true)
    await expectClosed(['/socket'])
    connection.close()
  })

  it('lets its handler detach the socket once, but a request without `Upgrade` never does', async () => {
    const thrown: unknown[] = []
    const detach = (response: ServerResponse) => {
      try {
        detachSocket(response)
      } catch (error) {
        thrown.push(error)
      }
    }
    handleUpgrade = (request, response) => {
      if (request.headers.upgrade === undefined) {
        detach(response)
        response.end()
        return
      }
      accept(response)
      detach(response)
    }
    const connection = new RawConnection(url)
    connection.write(requestBytes('GET', '/socket'))
    expect((await connection.answer())?.status).toBe(200)
    connection.write(requestBytes('GET', '/socket', handshake))
    expect((await connection.answer())?.status).toBe(101)
    expect(thrown).toEqual([new Error('the connection is not upgrading'), expect.any(Error)])
    connection.close()
  })
})

/** A client that runs in another thread, so that it can react while the server's thread is blocked. */
const secureClient = `
import { connect } from 'node:tls'
import { parentPort, workerData } from 'node:worker_threads'

async function converse() {
  const socket = connect({ port: workerData, host: '127.0.0.1', rejectUnauthorized: false })
  socket.write('GET / HTTP/1.1\\r\\nHost: gw.test\\r\\n\\r\\n')
  const statuses = []
  for await (const chunk of socket) {
    statuses.push(String(chunk).slice(9, 12))
    if (statuses.length === 2) return statuses.join()
    socket.write('GET / HTTP/1.1\\r\\nHost: gw.test\\r\\nConnection: upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
  }
}
const results = {}
for (let i = 0; i < 20; i++) {
  const statuses = await converse()
  results[statuses] = (results[statuses] ?? 0) + 1
}
parentPort.postMessage(results)
`

it('over TLS, an upgrade right after a complete response is not refused', async () => {
  const server = createHttpServer({ timeouts, tls: first, isIdle }, (request, response) => {
    whenWritable(request, response, () => {
      response.on('close', () => responseClosed(response))
      setImmediate(() => {
        response.end('ok')
        // Blocks this thread until the client has sent its next request. So Node reads the next request first, and only
        // then reports that the response was written.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
      })
    })
  })
  routeUpgrades(server, () => true, { language: () => 'fr' })
  const { port } = new URL(await listen(server))
  const script = new URL(`data:text/javascript,${encodeURIComponent(secureClient)}`)
  const client = new Worker(script, { workerData: Number(port) })
  const [results] = await once(client, 'message')
  server.close()
  expect(results).toEqual({ '200,200': 20 })
}, 30_000)
