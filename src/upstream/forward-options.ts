// Everything needed to forward one request, and the observer that is notified how it ended.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ClientKey } from '../identity/client-key.ts'
import type { UpstreamTrace } from '../observability/tracing/tracing.ts'
import type { Outcome } from './failures.ts'
import type { ResponseHeaderRules } from './response-head.ts'
import type { Connection } from './targets/connection.ts'
import type { Endpoint } from './targets/endpoint.ts'
import type { Upstream } from './targets/upstreams.ts'
import type { WebSocketHandshake } from './websocket/websocket-upgrade.ts'

/** A connection that is this request's alone, and where it leads. */
export interface TakenConnection {
  readonly endpoint: Endpoint
  readonly connection: Connection
}

/** What a request holds since before its use was counted, so that it cannot be refused afterwards. */
export interface Reserved {
  /** Where one connection of the client is counted, or is taken. */
  readonly endpoint: Endpoint
  readonly client: ClientKey
  /** Set if the request had to wait for it. */
  readonly connection: Connection | undefined
}

export interface ForwardOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
  /** A hash of the user, where the upstream splits by user: requests with the same go to the same endpoint. */
  readonly splitKey: number | undefined
  /** Whose connection it is, as `connections_per_client` counts. */
  readonly client: ClientKey
  /** Set if its use was counted: `forward` takes it over. */
  readonly reserved?: Reserved | undefined
  /** Whether its use was counted before. */
  readonly countsUse: boolean
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
export interface ForwardObserver {
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
