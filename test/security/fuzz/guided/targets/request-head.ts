// If Node's parser and the gateway's rules accept a request, strict-reader.ts must read the same request.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { Duplex } from 'node:stream'
import { parseRequestHead } from '../../../../../src/gate/parsing/request-head.ts'
import { isHost } from '../../../../../src/gate/parsing/request-target.ts'
import {
  asksForWebSocket,
  bearerPrefix,
  isHandshake,
  parseOfferedProtocols,
} from '../../../../../src/gate/parsing/websocket-handshake.ts'
import { createTrustedProxies } from '../../../../../src/http/client-address.ts'
import { createHttpServer } from '../../../../../src/http/http-server.ts'
import { routeUpgrades } from '../../../../../src/http/upgrade.ts'
import { Refusal } from '../../../../../src/refusals/refusal.ts'
import { corpus, expand } from '../../../corpus.ts'
import { readStrictly, type StrictRequest } from '../strict-reader.ts'
import { bytesOf, promise, type Target, Violation } from '../target.ts'

const dictionary = [
  ...[
    '\r\n',
    '\n',
    '\r\n\r\n',
    '\r',
    ': ',
    ':',
    ' ',
    '\t',
    '\0',
    'Host: gw.test\r\n',
    'Content-Length: ',
    '0',
    '5',
  ],
  ...[
    'Transfer-Encoding: chunked\r\n',
    'chunked',
    ', chunked',
    'identity',
    '0\r\n\r\n',
    '5\r\nabcde\r\n',
    ';a=b\r\n',
  ],
  ...[
    'GET / HTTP/1.1\r\n',
    'POST /x HTTP/1.1\r\n',
    'HTTP/1.0',
    'HTTP/1.2',
    'HTTP/2.0',
    'http://gw.test/',
    'CONNECT',
  ],
  ...[
    'Connection: close\r\n',
    'Connection: Upgrade\r\n',
    'Upgrade: h2c\r\n',
    'Upgrade: websocket\r\n',
    'Expect: 100-continue\r\n',
  ],
  ...[
    'Authorization: Bearer x\r\n',
    'X-API-Key: x\r\n',
    'X-Forwarded-For: 1.2.3.4\r\n',
    'X-Request-Id: a\r\n',
    'Trailer: x\r\n',
  ],
  ...[
    'Sec-WebSocket-Protocol: peage.bearer.x, y\r\n',
    'Sec-WebSocket-Version: 13\r\n',
    '\x0b',
    '\xff',
    '\x7f',
    ' \r\n',
    '\r\n ',
  ],
]

const proxies = createTrustedProxies(['10.0.0.0/8'])
const timeouts = { headers: 60_000, body_idle: 60_000, keep_alive: 60_000 }

export function openRequestHead(): Target {
  const server = createHttpServer({ timeouts, tls: undefined, isIdle: () => false }, serve)
  // No route accepts an upgrade, so each request with `Upgrade` is parsed a second time, as a plain request.
  routeUpgrades(server, () => false, { language: () => 'fr' })
  for (const event of ['checkContinue', 'checkExpectation']) server.on(event, serve)
  server.on('clientError', (_error, socket) => socket.destroy())
  return {
    seeds: [
      ...corpus.raw_requests.map(({ raw }) => expand(raw)).filter(raw => raw.length < 1_500),
      ...corpus.headers.map(({ lines }) =>
        expand(`GET /x HTTP/1.1\r\nHost: gw.test\r\n${lines.join('\r\n')}\r\n\r\n`),
      ),
      'POST /a HTTP/1.1\r\nHost: gw.test\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.0\r\n\r\n',
      `GET /ws HTTP/1.1\r\nHost: gw.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\nSec-WebSocket-Protocol: peage.bearer.a, chat\r\n\r\n`,
    ].filter(raw => raw.length < 1_500),
    dictionary,
    maxLength: 1_500,
    maxMs: 1_000,
    covers: /\/src\/(?:gate\/parsing|http)\//,
    async run(input) {
      const connection = new Connection(server)
      connections.set(connection, connection)
      await connection.say(bytesOf(input))
      if (connection.failure !== undefined) throw connection.failure
      return judge(connection.heard, readStrictly(input))
    },
    async close() {
      server.close()
    },
  }
}

/** A request after Node has parsed it, and the head that the gateway has parsed from this request. */
interface Heard {
  readonly request: IncomingMessage
  readonly head: ReturnType<typeof parseRequestHead>
  body: string
}

const connections = new WeakMap<object, Connection>()

function serve(request: IncomingMessage, response: ServerResponse): void {
  connections.get(request.socket)?.hear(request, response)
}

function judge(heard: readonly Heard[], strict: readonly StrictRequest[]): string {
  const outcomes: string[] = []
  for (const [index, { request, head, body }] of heard.entries()) {
    const { target } = head
    if (target instanceof Refusal) {
      outcomes.push(target.code)
      if (target.response('fr').fields.includes('connection')) break
      continue
    }
    const told = strict[index]
    promise(
      told !== undefined,
      'accepts bytes that are not a request',
      request.method,
      request.url,
      request.rawHeaders,
    )
    promise(
      request.method === told.method && request.url === told.target,
      'reads a different request line',
      told,
      request.url,
    )
    promise(
      sameFields(request.rawHeaders, told.fields),
      'reads different headers',
      told.fields,
      request.rawHeaders,
    )
    const all = (name: string) =>
      told.fields.filter(([other]) => other.toLowerCase() === name).map(([, text]) => text)
    promise(
      all('host').length <= 1 && head.host === (all('host')[0] ?? ''),
      'reads a different Host',
      head.host,
    )
    promise(
      head.host === '' || isHost(head.host),
      'accepts a Host that contains more than a name and a port',
      head.host,
    )
    promise(
      all('content-length').length + all('transfer-encoding').length <= 1,
      'accepts both Content-Length and Transfer-Encoding, or one of them twice',
    )
    const [length] = all('content-length')
    promise(
      head.contentLength === (length === undefined ? undefined : Number(length)),
      'reads a different Content-Length',
      length,
    )
    promise(
      head.hasBody === ((length ?? '0') !== '0' || all('transfer-encoding').length > 0),
      'is wrong about whether there is a body',
    )
    const twice = all('authorization').length > 1 || all('x-api-key').length > 1
    promise(
      head.hasAmbiguousCredentials === twice,
      'does not notice a second credential, or sees one that does not exist',
    )
    promise(head.authorization === all('authorization').at(-1), 'reads a different credential')
    promise(isIP(head.client) !== 0, 'returns a client that is not an IP address', head.client)
    const protocols = parseOfferedProtocols(request.headers['sec-websocket-protocol'])
    promise(
      !protocols.others.some(name => name.toLowerCase().includes(bearerPrefix)),
      'forwards a bearer token',
      protocols,
    )
    promise(
      !asksForWebSocket(request) || !isHandshake(request) || !head.hasBody,
      'accepts a WebSocket handshake with a body',
    )
    if (request.complete) promise(told.body === body, 'reads a different body', told.body, body)
    outcomes.push(
      `${request.method === 'GET' ? 'GET' : 'other'} ${head.hasBody ? 'with a body' : 'without'}${request.complete ? '' : ', broken off'}`,
    )
  }
  return outcomes.slice(0, 2).join(', then ') || 'nothing'
}

/** Compares all headers except `Upgrade`, which the gateway removes before it parses a request again. */
function sameFields(raw: readonly string[], fields: StrictRequest['fields']): boolean {
  const told = fields.filter(([name]) => name.toLowerCase() !== 'upgrade')
  const parsed: [string, string][] = []
  for (let i = 0; i < raw.length; i += 2) parsed.push([raw[i] as string, raw[i + 1] as string])
  return JSON.stringify(parsed.filter(([name]) => name.toLowerCase() !== 'upgrade')) === JSON.stringify(told)
}

/** The server side of a connection that exists only in memory. */
class Connection extends Duplex {
  readonly heard: Heard[] = []
  failure: Error | undefined
  readonly remoteAddress = '10.0.0.1'
  bytesRead = 0
  readonly #server: Server

  constructor(server: Server) {
    super({ allowHalfOpen: true })
    this.#server = server
    this.on('error', () => {})
  }

  hear(request: IncomingMessage, response: ServerResponse): void {
    const heard: Heard = { request, head: parseRequestHead(request, proxies), body: '' }
    this.heard.push(heard)
    request.on('data', chunk => {
      heard.body += chunk.toString('latin1')
    })
    request.on('error', () => {})
    response.on('error', () => {})
    const { target } = heard.head
    const isLast = target instanceof Refusal && target.response('fr').fields.includes('connection')
    if (isLast) response.setHeader('connection', 'close')
    response.end()
  }

  /** Sends all bytes, ends the client's side, and waits until the server has closed the connection. */
  async say(bytes: Buffer): Promise<void> {
    const closed = new Promise<void>(resolve => this.once('close', resolve))
    this.#server.emit('connection', this)
    this.push(bytes)
    this.push(null)
    const late = setTimeout(() => {
      this.failure = new Violation('keeps a connection open 30 s after the client has ended its side')
      this.destroy()
    }, 30_000)
    await closed
    clearTimeout(late)
  }

  setTimeout(): this {
    return this
  }

  override _read(): void {}

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done()
  }

  destroySoon(): void {
    this.end(() => this.destroy())
  }
}
