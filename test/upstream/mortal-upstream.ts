// An upstream that a test kills, even with requests in flight, and later revives at the same address.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface MortalUpstream {
  /** `http(s)://127.0.0.1:port`; unchanged by `kill` and `revive`. */
  readonly url: string
  readonly name: string
  /** The received requests, without health checks. */
  readonly received: IncomingMessage[]
  checks: number
  /** The highest number of requests in flight at the same time. */
  most: number
  /** Handles requests; by default it responds with the name. */
  answer: RequestListener
  kill(): Promise<void>
  revive(): Promise<void>
}

/** Starts an upstream that responds with its name. It counts `/health` separately. @param tls certificate for https */
export async function startMortal(name: string, tls?: ServerOptions): Promise<MortalUpstream> {
  let server: Server
  let port = 0
  let open = 0
  const listener: RequestListener = (request, response) => {
    if (request.url === '/health') upstream.checks += 1
    else upstream.received.push(request)
    open += 1
    upstream.most = Math.max(upstream.most, open)
    response.on('close', () => (open -= 1))
    upstream.answer(request, response)
  }
  const upstream: MortalUpstream = {
    get url() {
      return `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
    },
    name,
    received: [],
    checks: 0,
    most: 0,
    answer: (_, response) => response.end(name),
    async kill() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
    async revive() {
      server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
      server.on('clientError', (_, socket) => socket.destroy())
      await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
      port = (server.address() as AddressInfo).port
    },
  }
  await upstream.revive()
  return upstream
}
