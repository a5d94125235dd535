// An upstream that a test can stop, even with requests in flight, and start again at the same address.
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
  /** Handles requests. By default, it responds with `name`. */
  answer: RequestListener
  kill(): Promise<void>
  revive(): Promise<void>
}

/**
 * Starts an upstream that responds with its name. Requests to `/health` are counted in `checks`, not in `received`.
 * @param tls the certificate; without it, the upstream uses http
 */
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
