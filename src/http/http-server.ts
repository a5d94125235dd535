// The client listener's HTTP/1.1 server, plain or over TLS, with the same limits for both.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type SecureContextOptions, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'

/** 16 KiB (CONTRACT §4). The gate checks it too: Node counts no separators, so a thousand headers slip past it. */
export const maxHeaderBytes = 16_384

interface HttpServerOptions {
  /** `server.timeouts`, milliseconds. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** Undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  /** Whether every request of the connection has been answered. */
  isIdle(socket: Socket): boolean
}

/** Typed as the plain server, since callers use both alike. */
export function createHttpServer(
  { timeouts, tls, isIdle }: HttpServerOptions,
  listener: RequestListener,
): Server {
  const options: ServerOptions = {
    maxHeaderSize: maxHeaderBytes,
    // The gate refuses a missing Host, with the gateway's own response.
    requireHostHeader: false,
    // Bodies have an idle limit instead; unless this is 0, Node rejects a `headers` timeout above five minutes.
    requestTimeout: 0,
    headersTimeout: timeouts.headers,
    // How often Node checks for connections past these timeouts; its default is 30 seconds.
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
            // A client that speaks only HTTP/2 learns in the handshake that it is not offered.
            ALPNProtocols: ['http/1.1'],
            // The handshake precedes the headers: without a limit a client could stall in it.
            handshakeTimeout: timeouts.headers,
          },
          listener,
        ) as Server)
  // By default Node silently drops headers past the thousandth: the body's length, say, or a second credential.
  server.maxHeadersCount = 0
  // No byte in either direction for that long. A client that does not read its response must not keep it in memory,
  // nor occupy the upstream's connection. A client that is waiting for its response is left alone.
  server.setTimeout(timeouts.body_idle, socket => {
    if (socket.writableLength > 0 || isIdle(socket)) socket.destroy()
  })
  return server
}

/**
 * Applies from each connection's next request on; `body_idle` applies to new connections only. The TLS handshake
 * timeout does not change.
 */
export function setTimeouts({ server }: FastifyInstance, timeouts: HttpServerOptions['timeouts']): void {
  server.headersTimeout = timeouts.headers
  server.keepAliveTimeout = timeouts.keep_alive
  server.timeout = timeouts.body_idle
}

/** New connections get the new certificate; open connections stay. */
export function setCertificate(app: FastifyInstance, context: SecureContextOptions): void {
  if (app.server instanceof TlsServer) app.server.setSecureContext(context)
}

export function schemeOf(app: FastifyInstance): 'http' | 'https' {
  return app.server instanceof TlsServer ? 'https' : 'http'
}
