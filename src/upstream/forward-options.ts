// All that one request is forwarded with.
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
  /** Path and query as the upstream is sent them. */
  readonly path: string
  /**
   * Names and values in turn; Host's comes first, and is that of the target in the end. `traceparent` comes next where
   * `trace` has one to tell, and is that of the try.
   */
  readonly fields: string[]
  /** Host's value where it is not to be the target's. */
  readonly host?: string | undefined
  readonly hasBody: boolean
  /** Milliseconds to the answer's head. */
  readonly responseTimeoutMs: number
  /** Bytes of the request's body, `undefined` for no limit. */
  readonly maxBodyBytes: number | undefined
  /** Milliseconds in which the client must send or read something while it is its turn. */
  readonly bodyIdleTimeoutMs: number
  readonly requestId: string
  /** What is changed in the upstream's answer, `undefined` for nothing. */
  readonly responseHeaderRules: ResponseHeaderRules | undefined
  /** Told of an answer that does not end by itself, and how to end it. @returns to be called when it has ended */
  onEventStream(end: () => void): () => void
  /** The client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1). */
  readonly expectsContinue: boolean
  /** Where the client asks for a WebSocket: the upstream is asked for one too. */
  readonly webSocket?: WebSocketHandshake | undefined
  /** Nothing where there are no traces. */
  readonly trace?: UpstreamTrace | undefined
  readonly observer: ForwardObserver
}

/** Sends the request once more, where nothing of an answer came and that may mend it. */
export type Retry = (options: ForwardOptions, failed: Target, retriesLeft: number) => void
