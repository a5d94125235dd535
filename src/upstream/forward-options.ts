// Everything needed to forward one request.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { UpstreamTrace } from '../observability/tracing/tracing.ts'
import type { ForwardObserver } from './outcome.ts'
import type { ResponseHeaderRules } from './response-headers.ts'
import type { Target } from './targets/target.ts'
import type { Upstream } from './targets/upstreams.ts'
import type { WebSocketHandshake } from './websocket/websocket-upgrade.ts'

export interface ForwardOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: Upstream
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

/** Sends the request again, if no byte of a response came and another attempt may succeed. */
export type Retry = (options: ForwardOptions, failed: Target, retriesLeft: number) => void
