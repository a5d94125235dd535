// How the listener that clients reach speaks HTTP/1.1: plainly, or over TLS under the very same limits.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type SecureContextOptions, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'

/** 16 KiB (CONTRACT §4). The gate holds a request to it too: Node counts no separators, so a thousand small fields slip under it. */
export const maxHeaderBytes = 16_384

interface HttpServerOptions {
  /** `server.timeouts`, milliseconds. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** Undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  /** Whether the connection's requests have all been answered. */
  isIdle(socket: Socket): boolean
}

/** Typed as the plain one: everything that is done with either is the same. */
export function createHttpServer(
  { timeouts, tls, isIdle }: HttpServerOptions,
  listener: RequestListener,
): Server {
  const options: ServerOptions = {
    maxHeaderSize: maxHeaderBytes,
    // A missing Host is refused by the gate, in our words.
    requireHostHeader: false,
    // Bodies have an idle limit instead; without it Node refuses a `headers` of more than five minutes.
    requestTimeout: 0,
    headersTimeout: timeouts.headers,
    // How often Node looks for those that took longer: half a minute unless told.
    connectionsCheckingInterval: 1_000,
    keepAliveTimeout: timeouts.keep_alive,
  }
  const server =
    tls === undefined
      ? createServer(options, listener)
      : (createTlsServer(
          {
            ...options,
            ...tls,
            // Clients that speak HTTP/2 alone are told so in the handshake.
            ALPNProtocols: ['http/1.1'],
            // It comes before the header fields, and would be a place to stand still.
            handshakeTimeout: timeouts.headers,
          },
          listener,
        ) as Server)
  // Node would drop what stands behind the thousandth field unseen: the body's length, or a second credential.
  server.maxHeadersCount = 0
  // Nothing came or went for that long: a client that does not read its answer must not hold it in memory, nor the
  // upstream's connection behind it. One that waits for its answer is let be.
  server.setTimeout(timeouts.body_idle, socket => {
    if (socket.writableLength > 0 || isIdle(socket)) socket.destroy()
  })
  return server
}

/**
 * From the next request of each connection on; `body_idle` for connections that are opened from now on, and the limit
 * on TLS handshakes stays what it was.
 */
export function setTimeouts({ server }: FastifyInstance, timeouts: HttpServerOptions['timeouts']): void {
  server.headersTimeout = timeouts.headers
  server.keepAliveTimeout = timeouts.keep_alive
  server.timeout = timeouts.body_idle
}

/** Connections that are opened from now on are shown the new certificate; those that are open stay. */
export function setCertificate(app: FastifyInstance, context: SecureContextOptions): void {
  if (app.server instanceof TlsServer) app.server.setSecureContext(context)
}

export function schemeOf(app: FastifyInstance): 'http' | 'https' {
  return app.server instanceof TlsServer ? 'https' : 'http'
}
