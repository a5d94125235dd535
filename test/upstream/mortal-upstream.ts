// An upstream that can be killed, with everything in flight, and brought back at the same address.
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'

export interface MortalUpstream {
  /** `http(s)://127.0.0.1:port`; the same after it was killed and revived. */
  readonly url: string
  readonly name: string
  /** What it received, health checks left out. */
  readonly received: IncomingMessage[]
  checks: number
  /** The most requests that it had at once. */
  most: number
  /** Answers instead of its name. */
  answer: RequestListener
  kill(): Promise<void>
  revive(): Promise<void>
}

/** Answers its name; `/health` is counted apart. @param tls its certificate, for https */
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
