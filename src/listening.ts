// How the listener that clients reach speaks HTTP/1.1: plainly, or over TLS under the very same limits.
import type { ServerOptions } from 'node:http'
import type { ServerOptions as TlsServerOptions } from 'node:https'
import { type SecureContextOptions, Server as TlsServer } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import { maxFieldBytes } from './gate/request-fields.ts'

interface Listening {
  /** `server.timeouts.headers`, milliseconds. */
  headersTimeout: number
  /** Undefined for plain HTTP. */
  tls: SecureContextOptions | undefined
}

/** What Fastify makes its server of. Typed as the plain one: everything that is done with either is the same. */
export function listenerOptions({ headersTimeout, tls }: Listening): { http: ServerOptions } {
  const http: ServerOptions = {
    maxHeaderSize: maxFieldBytes,
    // A missing Host is refused by the gate, in our words.
    requireHostHeader: false,
    // Bodies have an idle limit instead; without it Node refuses a `headers` of more than five minutes.
    requestTimeout: 0,
    headersTimeout,
    // How often Node looks for those that took longer: half a minute unless told.
    connectionsCheckingInterval: 1_000,
  }
  if (tls === undefined) return { http }
  const https: TlsServerOptions = {
    ...http,
    ...tls,
    // Clients that speak HTTP/2 alone are told so in the handshake.
    ALPNProtocols: ['http/1.1'],
    // It comes before the header fields, and would be a place to stand still.
    handshakeTimeout: headersTimeout,
  }
  return { https } as object as { http: ServerOptions }
}

/** Connections that are opened from now on are shown the new certificate; those that are open stay. */
export function showCertificate(app: FastifyInstance, context: SecureContextOptions): void {
  if (app.server instanceof TlsServer) app.server.setSecureContext(context)
}

export function schemeOf(app: FastifyInstance): 'http' | 'https' {
  return app.server instanceof TlsServer ? 'https' : 'http'
}
