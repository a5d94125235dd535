// Tests generated pipelines: all requests are answered in order, and none starts after its client has disconnected.
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endDeferred } from '../../src/http/deferred-writes.ts'
import { createHttpServer } from '../../src/http/http-server.ts'
import { isIdle, responseClosed, whenWritable } from '../../src/http/pipelining.ts'
import { chunked, RawConnection, requestBytes } from '../security/raw-client.ts'
import { listen } from '../support/upstream.ts'
import { sizes, turns, writePieces } from './pieces.ts'

const seed = 20_261_122
const timeouts = { headers: 60_000, body_idle: 60_000, keep_alive: 60_000 }

let server: Server
let url: string
let handle: (request: IncomingMessage, response: ServerResponse) => void
const begun: string[] = []
/**
 * The requests that started too early or too late: while another request of the same connection ran, or after the
 * client had disconnected.
 */
const wronglyBegun: string[] = []

beforeAll(async () => {
  const last = new WeakMap<Socket, ServerResponse>()
  server = createHttpServer({ timeouts, tls: undefined, isIdle }, (request, response) => {
    const { socket, url: name = '' } = request
    whenWritable(request, response, () => {
      const isAnotherRunning = last.get(socket)?.writableFinished === false
      if (isAnotherRunning || !socket.writable || isIdle(socket)) wronglyBegun.push(name)
      last.set(socket, response)
      begun.push(name)
      response.on('close', () => responseClosed(response))
      handle(request, response)
    })
  })
  url = await listen(server)
})
beforeEach(clear)
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

function clear(): void {
  begun.length = 0
  wronglyBegun.length = 0
}

/** Opens a connection. @returns the client's side and the server's socket */
async function connect(): Promise<[RawConnection, Socket]> {
  const accepted = once(server, 'connection')
  const connection = new RawConnection(url)
  const [socket] = await accepted
  return [connection, socket]
}

/** Resolves when the socket emits the event. Ignores errors, because the socket emits `close` after each error. */
function heard(socket: Socket, event: 'end' | 'close'): Promise<void> {
  return new Promise(resolve => socket.once(event, () => resolve()))
}

interface Exchange {
  body: 'none' | 'declared' | 'chunked'
  way: 'end' | 'write and end' | 'deferred end' | 'without reading'
  /** The number of turns of the event loop that the handler waits before it responds. */
  turnsTaken: number
}
const exchange: fc.Arbitrary<Exchange> = fc.record({
  body: fc.constantFrom('none', 'declared', 'chunked'),
  way: fc.constantFrom('end', 'write and end', 'deferred end', 'without reading'),
  turnsTaken: fc.nat(4),
})
const pipeline = fc.record({ exchanges: fc.array(exchange, { minLength: 1, maxLength: 8 }), sizes })

function requestOf(name: string, { body }: Exchange): Buffer {
  if (body === 'none') return requestBytes('GET', name)
  if (body === 'declared') return requestBytes('POST', name, [`Content-Length: ${name.length}`], name)
  return requestBytes('POST', name, ['Transfer-Encoding: chunked'], chunked(name))
}

function answerTo(name: string, { body, way }: Exchange): string {
  return `${name} ${way === 'without reading' || body === 'none' ? '' : name}`
}

async function answer(request: IncomingMessage, response: ServerResponse, exchange: Exchange): Promise<void> {
  let body = ''
  if (exchange.way === 'without reading') request.resume()
  else for await (const chunk of request) body += chunk
  const text = `${request.url} ${body}`
  await turns(exchange.turnsTaken)
  if (exchange.way === 'deferred end') endDeferred(response, text)
  else if (exchange.way === 'write and end') {
    response.write(text.slice(0, 2))
    await turns(1)
    response.end(text.slice(2))
  } else response.end(text)
}

describe('pipelined requests', () => {
  it('all get a response, in order, however their bytes are split and however long their handlers take', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(pipeline, { minLength: 1, maxLength: 3 }), async pipelines => {
        clear()
        const exchanges = new Map<string, Exchange>()
        handle = (request, response) => {
          const exchange = exchanges.get(request.url ?? '')
          if (exchange !== undefined) void answer(request, response, exchange)
        }
        const connections: [RawConnection, Socket][] = []
        for (const _ of pipelines) connections.push(await connect())
        const all = pipelines.map(({ exchanges: own, sizes }, index) => {
          const named = own.map((exchange, place) => [`/${index}/${place}`, exchange] as const)
          for (const [name, exchange] of named) exchanges.set(name, exchange)
          return { named, sizes }
        })
        const talk = async (index: number) => {
          const [connection, socket] = connections[index] as [RawConnection, Socket]
          const { named, sizes } = all[index] as (typeof all)[number]
          const bytes = Buffer.concat(named.map(([name, exchange]) => requestOf(name, exchange)))
          await writePieces(connection, bytes, sizes)
          for (const [name, exchange] of named) {
            expect((await connection.answer())?.body.toString()).toBe(answerTo(name, exchange))
          }
          await turns(2)
          expect(isIdle(socket)).toBe(true)
          expect(connection.unread.length).toBe(0)
          expect(begun.filter(name => name.startsWith(`/${index}/`))).toEqual(named.map(([name]) => name))
          connection.close()
        }
        await Promise.all(pipelines.map((_, index) => talk(index)))
        expect(wronglyBegun).toEqual([])
      }),
      { seed, numRuns: 60 },
    )
  })

  it('are not started after their client has disconnected, even if the running request finishes later', async () => {
    const leaving = fc.record({
      exchanges: fc.array(exchange, { minLength: 2, maxLength: 6 }),
      stuck: fc.nat(4),
      leave: fc.constantFrom('close', 'half-close', 'reset'),
      finish: fc.constantFrom('as it is seen', 'afterwards', 'never'),
      way: fc.constantFrom('end', 'deferred end'),
    })
    await fc.assert(
      fc.asyncProperty(leaving, async ({ exchanges, stuck: place, leave, finish, way }) => {
        clear()
        const stuck = Math.min(place, exchanges.length - 2)
        const names = exchanges.map((_, index) => `/${index}`)
        let onStuck = (_response: ServerResponse) => {}
        const isStuck = new Promise<ServerResponse>(resolve => {
          onStuck = resolve
        })
        handle = (request, response) => {
          const index = Number(request.url?.slice(1))
          const exchange = exchanges[index]
          if (index === stuck) onStuck(response)
          else if (exchange !== undefined) void answer(request, response, exchange)
        }
        const [connection, socket] = await connect()
        connection.write(
          Buffer.concat(names.map((name, index) => requestOf(name, exchanges[index] as Exchange))),
        )
        const response = await isStuck
        const end = () => (way === 'end' ? response.end('late') : endDeferred(response, 'late'))
        await turns(2)
        const seen = heard(socket, leave === 'half-close' ? 'end' : 'close')
        const closed = heard(socket, 'close')
        if (leave === 'half-close') connection.socket.end()
        else if (leave === 'reset') connection.socket.resetAndDestroy()
        else connection.close()
        await seen
        if (finish === 'as it is seen') end()
        await closed
        if (finish === 'afterwards') end()
        await turns(5)
        expect(begun).toEqual(names.slice(0, stuck + 1))
        expect(wronglyBegun).toEqual([])
      }),
      { seed, numRuns: 100 },
    )
  })

  it.each([
    [101, 101],
    [102, 0],
  ])(
    'get responses only if at most 100 of them wait (%i requests at once get %i responses)',
    async (sent, answered) => {
      handle = (_request, response) => setImmediate(() => response.end('x'))
      const [connection] = await connect()
      connection.write(Buffer.concat(Array.from({ length: sent }, () => requestBytes('GET', '/'))))
      if (answered === 0) expect(await connection.endsWithin(5_000)).toBe(true)
      else
        for (let count = 0; count < answered; count += 1)
          expect((await connection.answer())?.status).toBe(200)
      expect(begun).toHaveLength(Math.max(answered, 1))
      expect(connection.unread.length).toBe(0)
      connection.close()
    },
  )
})
