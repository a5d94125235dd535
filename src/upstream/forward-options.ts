// Everything needed to forward one request, and the observer that is notified how it ended.
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
  /** `connections_per_client` counts by this key. */
  readonly client: ClientKey
  /** Set if the use of the request is counted. `forward` takes the reservation over. */
  readonly reservation: Reservation | undefined
  /** Path and query as sent to the upstream. */
  readonly path: string
  /**
   * Names and values in turn. Host comes first and, if `trace` propagates, `traceparent` second: each attempt sets
   * the values of both.
   */
  readonly fields: string[]
  /** Replaces the target's Host. */
  readonly host?: string | undefined
  readonly hasBody: boolean
  /** Undefined for a chunked body. */
  readonly contentLength: number | undefined
  /** Until the response head. */
  readonly responseTimeoutMs: number
  /** Of the request body; `undefined` for no limit. */
  readonly maxBodyBytes: number | undefined
  /** When it is the client's turn, it must send or read something within this time. */
  readonly bodyIdleTimeoutMs: number
  readonly requestId: string
  /** Changes to the headers of the upstream's response. */
  readonly responseHeaderRules: ResponseHeaderRules | undefined
  /** Receives a way to end a response that does not end by itself. @returns call it when the response has ended */
  onEventStream(end: () => void): () => void
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Set if the client asks for a WebSocket; the upstream is then asked for one too. */
  readonly webSocket?: WebSocketHandshake | undefined
  readonly trace?: UpstreamTrace | undefined
  readonly observer: ForwardObserver
}

/** Notified of each attempt, and of the end: exactly one of `onEnd` and `onRefused`, once. */
export interface ForwardObserver extends WaitingClient {
  /**
   * @param target `scheme://host:port`
   * @param duration milliseconds to the response head, or to the end of the attempt if none came
   */
  onAttempt(target: string, duration: number): void
  /** The exchange is over. The client's side, if still open, is ended next. */
  onEnd(outcome: Outcome): void
  /**
   * No response was sent, and sending one is left to the observer.
   * @param thrown Refusal 400, 413, 502, 503 or 504; ClientDisconnected if the client is gone; or an unexpected error
   */
  onRefused(thrown: unknown): void
}
