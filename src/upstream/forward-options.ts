// Defines the input of `forward`, and the observer that is notified of each attempt and of the end of the exchange.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ClientKey } from '../identity/client-key.ts'
import type { UpstreamTrace } from '../observability/tracing/tracing.ts'
import type { Outcome } from './failures.ts'
import type { Reservation } from './reservation.ts'
import type { ResponseHeaderRules } from './response-head.ts'
import type { WaitingClient } from './targets/connection-pool.ts'
import type { Upstream } from './targets/upstreams.ts'
import type { WebSocketHandshake } from './websocket/websocket-upgrade.ts'

export interface ForwardOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** Identifies the client for the limit `connections_per_client`. */
  readonly client: ClientKey
  /** Set if the request counts as a use. `forward` takes or cancels the reservation. */
  readonly reservation: Reservation | undefined
  /** The path and query that the upstream receives. */
  readonly path: string
  /**
   * The request headers, as alternating names and values. Host is the first header. If `traceparent` is propagated, it
   * is the second header. Each attempt sets the values of these two headers.
   */
  readonly fields: string[]
  /** The Host header for the upstream. If set, it replaces the target's Host. */
  readonly host?: string | undefined
  readonly hasBody: boolean
  /** The declared length of the body; undefined for a chunked body. */
  readonly contentLength: number | undefined
  /** Maximum time until the response head. */
  readonly responseTimeoutMs: number
  /** Maximum size of the request body; `undefined` for no limit. */
  readonly maxBodyBytes: number | undefined
  /** Maximum time that the gateway waits for the client to send or read the next bytes. */
  readonly bodyIdleTimeoutMs: number
  readonly requestId: string
  readonly responseHeaderRules: ResponseHeaderRules | undefined
  /**
   * Called when the response is an event stream, which does not end by itself.
   * @param end a function that ends the response
   * @returns a function to call when the response has ended
   */
  onEventStream(end: () => void): () => void
  /** Whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Set if the client requests a WebSocket. The gateway then requests one from the upstream. */
  readonly webSocket?: WebSocketHandshake | undefined
  readonly trace?: UpstreamTrace | undefined
  readonly observer: ForwardObserver
}

/** Observes the attempts and the end of an exchange. Exactly one of `onEnd` and `onRefused` is called, once. */
export interface ForwardObserver extends WaitingClient {
  /**
   * @param target `scheme://host:port`
   * @param duration the time in milliseconds until the response head; if there was no response head, until the end of
   * the attempt
   */
  onAttempt(target: string, duration: number): void
  /** Called when the exchange has ended. After this call, the relay ends the client's side if it is still open. */
  onEnd(outcome: Outcome): void
  /** Called if no response was sent to the client. The observer must send a response. */
  onRefused(thrown: unknown): void
}
