// Creates the HTTP/1.1 server of the client listener, plain or over TLS, with the same limits for both.
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type SecureContextOptions, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'

/** The maximum size of the headers, 16 KiB. The gate also checks this limit, because Node does not count separators. */
export const maxHeaderBytes = 16_384

interface HttpServerOptions {
  /** `server.timeouts`, in milliseconds. */
  timeouts: { headers: number; body_idle: number; keep_alive: number }
  /** The certificate; undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
  /** Returns whether every request of the connection has its response. */
  isIdle(socket: Socket): boolean
}

/** Creates a plain or a TLS server. Both have the same type, because callers use them in the same way. */
export function createHttpServer(
  { timeouts, tls, isIdle }: HttpServerOptions,
  listener: RequestListener,
): Server {
  const options: ServerOptions = {
    maxHeaderSize: maxHeaderBytes,
    // The gate refuses requests without `Host`, with the gateway's own response instead of Node's.
    requireHostHeader: false,
    // A request has no total time limit, because its body has an idle limit. Node's default limit of five minutes would
    // also make a longer `headers` timeout an error.
    requestTimeout: 0,
    headersTimeout: timeouts.headers,
    // The interval at which Node checks the timeouts of requests. Node's default is 30 seconds.
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
            // A client that supports only HTTP/2 fails in the handshake.
            ALPNProtocols: ['http/1.1'],
            // The handshake comes before the headers. Without this limit, a client could keep it open without end.
            handshakeTimeout: timeouts.headers,
          },
          listener,
        ) as Server)
  // By default, Node silently drops headers after the thousandth. A dropped header might be the length of the body or a
  // second credential.
  server.maxHeadersCount = 0
  // The maximum time without a byte in either direction. A client that does not read its response must not keep the
  // response in memory, or keep the upstream's connection busy. A client that waits for its response is not affected.
  server.setTimeout(timeouts.body_idle, socket => {
    if (socket.writableLength > 0 || isIdle(socket)) socket.destroy()
  })
  return server
}

/**
 * Changes the timeouts. The new values apply from the next request of each connection. A new `body_idle` applies only
 * to new connections. The timeout of the TLS handshake does not change.
 */
export function setTimeouts({ server }: FastifyInstance, timeouts: HttpServerOptions['timeouts']): void {
  server.headersTimeout = timeouts.headers
  server.keepAliveTimeout = timeouts.keep_alive
  server.timeout = timeouts.body_idle
}

/** Uses the new certificate for new connections. Open connections are not closed. */
export function setCertificate(app: FastifyInstance, context: SecureContextOptions): void {
  if (app.server instanceof TlsServer) app.server.setSecureContext(context)
}

export function schemeOf(app: FastifyInstance): 'http' | 'https' {
  return app.server instanceof TlsServer ? 'https' : 'http'
}
