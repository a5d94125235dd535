// A WebSocket service and its clients. They use the library `ws`, which the gateway does not use.
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { listen } from './upstream.ts'

export interface WebSocketUpstream {
  readonly url: string
  /** The received WebSocket handshakes. `requests` contains the requests without an Upgrade header. */
  readonly handshakes: IncomingMessage[]
  readonly requests: IncomingMessage[]
  /** The accepted WebSockets, including closed ones. */
  readonly sockets: WebSocket[]
  /** The close codes of the closed WebSockets. */
  readonly closed: { code: number }[]
  /** Handles each handshake. If it is undefined, the service accepts all handshakes. */
  refuse: ((socket: Duplex, request: IncomingMessage) => void) | undefined
  /** Handles each opened WebSocket. If it is undefined, the service sends all messages back. */
  onOpen: ((socket: WebSocket) => void) | undefined
  answer: RequestListener | undefined
  close(): Promise<void>
}

/** Starts a service that sends all messages back. It selects the subprotocol `chat` if a client offers it. */
export async function startWebSocketUpstream(): Promise<WebSocketUpstream> {
  const accepting = new WebSocketServer({
    noServer: true,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: protocols => (protocols.has('chat') ? 'chat' : false),
  })
  const raw = new Set<Duplex>()
  const server = createServer((request, response) => {
    upstream.requests.push(request)
    if (upstream.answer !== undefined) upstream.answer(request, response)
    else response.end('plain')
  })
  server.on('upgrade', (request, socket, head) => {
    upstream.handshakes.push(request)
    raw.add(socket)
    socket.on('error', () => {}).on('close', () => raw.delete(socket))
    if (upstream.refuse !== undefined) {
      upstream.refuse(socket, request)
      return
    }
    accepting.handleUpgrade(request, socket, head, webSocket => {
      upstream.sockets.push(webSocket)
      webSocket.on('error', () => {})
      webSocket.on('close', code => upstream.closed.push({ code }))
      if (upstream.onOpen !== undefined) upstream.onOpen(webSocket)
      else webSocket.on('message', (data, isBinary) => webSocket.send(data, { binary: isBinary }))
    })
  })
  const upstream: WebSocketUpstream = {
    url: await listen(server),
    handshakes: [],
    requests: [],
    sockets: [],
    closed: [],
    refuse: undefined,
    onOpen: undefined,
    answer: undefined,
    async close() {
      for (const socket of raw) socket.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return upstream
}

export interface WebSocketClient {
  readonly socket: WebSocket
  /** Returns the next unread message. */
  next(): Promise<string>
  /** Resolves when the WebSocket is closed, with the close code and the time from `performance.now()`. */
  readonly closed: Promise<{ code: number; at: number }>
}

interface Asking {
  token?: string
  protocols?: string[]
  headers?: Record<string, string>
  options?: ClientOptions
}

/** @throws Error from the package `ws` if the handshake is refused; the error message contains the status code */
export async function openWebSocket(url: string, asking: Asking = {}): Promise<WebSocketClient> {
  const { token, protocols = [], headers = {}, options } = asking
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, {
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
    ...options,
  })
  const heard: string[] = []
  let wake = () => {}
  socket.on('message', data => {
    heard.push(String(data))
    wake()
  })
  const closed = new Promise<{ code: number; at: number }>(resolve => {
    socket.on('close', code => resolve({ code, at: performance.now() }))
  })
  await new Promise<void>((resolve, reject) => socket.on('open', resolve).on('error', reject))
  return {
    socket,
    closed,
    async next() {
      while (heard.length === 0) {
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
      return heard.shift() as string
    },
  }
}

/** The header lines of a WebSocket handshake, for tests that write the bytes of a request themselves. */
export const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
]

/** The value of `Sec-WebSocket-Accept` in the response to `handshake` (RFC 6455 §1.3). */
export const accepted = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='
