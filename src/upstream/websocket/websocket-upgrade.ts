// Verifies the upstream's 101 response, relays it to the client, and opens the tunnel
// (RFC 6455 §4.1 and RFC 6455 §4.2.2).
import { hash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { detachSocket } from '../../http/upgrade.ts'
import { Refusal } from '../../refusals/refusal.ts'
import type { Outcome } from '../failures.ts'
import { type ResponseHeaderRules, relayHeaders } from '../response-head.ts'
import { openTunnel, type Tunnel } from './tunnel.ts'

export interface WebSocketHandshake {
  readonly key: string
  /** Subprotocols offered to the upstream. */
  readonly offeredProtocols: readonly string[]
  /**
   * The subprotocol that the response selects if the gateway offered none to the upstream. A browser that offered
   * subprotocols closes the connection if the response selects none of them.
   */
  readonly fallbackProtocol: string | undefined
  /** Receives the open tunnel. @returns a function to call when the WebSocket has ended */
  onOpen(tunnel: Tunnel): () => void
}

interface Options {
  readonly response: ServerResponse
  readonly handshake: WebSocketHandshake
  /** The headers of the upstream's 101 response, as undici passes them. */
  readonly rawHeaders: readonly Buffer[]
  readonly upstream: Duplex
  readonly requestId: string
  readonly responseHeaderRules?: ResponseHeaderRules | undefined
  readonly idleTimeoutMs: number
  readonly observer: { onEnd(outcome: Outcome): void }
}

/** @throws Refusal 502 if the upstream's 101 response does not match the handshake */
export function openWebSocket(options: Options): Tunnel {
  const { response, handshake, upstream, idleTimeoutMs } = options
  const fields = switchingProtocolsHeaders(options)
  // The socket is detached before the 101 response is sent, because detaching can fail. If this failed after the 101
  // response, the client would wait forever.
  const client = detachSocket(response)
  response.writeHead(101, fields)
  response.flushHeaders()
  const { observer } = options
  let unregister: (() => void) | undefined
  const tunnel = openTunnel({
    client,
    upstream,
    idleTimeoutMs,
    onEnd(outcome) {
      unregister?.()
      observer.onEnd(outcome)
    },
  })
  unregister = handshake.onOpen(tunnel)
  return tunnel
}

function switchingProtocolsHeaders({
  handshake,
  rawHeaders,
  requestId,
  responseHeaderRules,
}: Options): string[] {
  const received = new Map<string, string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = String(rawHeaders[i]).toLowerCase()
    const before = received.get(name)
    received.set(name, before === undefined ? String(rawHeaders[i + 1]) : `${before}, ${rawHeaders[i + 1]}`)
  }
  const protocol = received.get('sec-websocket-protocol')
  if (
    received.get('upgrade')?.toLowerCase() !== 'websocket' ||
    received.get('sec-websocket-accept') !== expectedAccept(handshake.key) ||
    (protocol !== undefined && !handshake.offeredProtocols.includes(protocol))
  ) {
    throw new Refusal('upstream_unreachable', {
      cause: new Error('the 101 response of the upstream does not match the handshake'),
    })
  }
  const relayed = relayHeaders(101, rawHeaders, requestId, responseHeaderRules)
  const fields = ['connection', 'Upgrade', 'upgrade', 'websocket', ...relayed]
  if (
    protocol === undefined &&
    handshake.offeredProtocols.length === 0 &&
    handshake.fallbackProtocol !== undefined
  ) {
    fields.push('sec-websocket-protocol', handshake.fallbackProtocol)
  }
  return fields
}

function expectedAccept(key: string): string {
  return hash('sha1', `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`, 'base64')
}
