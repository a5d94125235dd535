// The tracing interface for the rest of the program. If traces are off, no instance exists and nothing is loaded.
import type { IncomingMessage } from 'node:http'

export interface Tracing {
  /** Begins the span of a received request; its `traceparent`, if valid, is the parent. */
  begin(request: IncomingMessage, received: ReceivedRequest): RequestTrace
  /** Spans of storage queries made on a request's behalf. */
  readonly stores: StoreSpans
  /** Sends the remaining spans. @param timeoutMs spans that the collector has not taken by then are dropped */
  close(timeoutMs: number): Promise<void>
}

/** What is known of a request before any guard. */
export interface ReceivedRequest {
  readonly requestId: string
  /** The client's address. */
  readonly client: string
  /** The requested authority, as received. */
  readonly host: string
  /** The declared path of the route or of the gateway's own endpoint, never the path that a client wrote. */
  readonly template: string | undefined
  /** The route's name, if a route serves the request. */
  readonly route: string | undefined
}

export interface RequestTrace {
  /** 32 and 16 lower-case hexadecimal digits (W3C Trace Context). */
  readonly traceId: string
  readonly spanId: string
  /** The client's `traceparent` was valid: its `tracestate` belongs to this trace, and is passed on. */
  readonly isContinued: boolean
  /** Attributes storage queries by `work`, and by whatever it starts, to this request. */
  run(work: () => void): void
  /** The guard of this name decides next, or none does; the previous one has allowed the request. */
  onGuard(name: string | undefined): void
  /** The current guard has not allowed the request. */
  onGuardFailed(decision: GuardFailure, thrown: unknown): void
  /**
   * The request leaves the gateway: later storage queries are not attributed to it.
   * @param propagates whether the upstream receives `traceparent`
   */
  forwardTo(upstream: string, propagates: boolean): UpstreamTrace
  end(result: RequestResult): void
}

/** `error`: storage failed. */
export type GuardFailure = 'refuse' | 'error' | 'client_gone'

export interface RequestResult {
  /** Undefined if the client disconnected before a response began. */
  readonly status: number | undefined
  /** As in the access log. */
  readonly decision: string
  readonly outcome: string | undefined
}

/** The upstream attempts of one request. */
export interface UpstreamTrace {
  begin(attempt: Attempt): AttemptSpan
}

export interface Attempt {
  readonly method: string
  /** `scheme://host:port`. */
  readonly origin: string
  /** Path and query; the query is not recorded. */
  readonly path: string
  /** How often the request was sent before. */
  readonly resendCount: number
}

export interface AttemptSpan {
  /** The header's value; undefined if it is not propagated. */
  readonly traceparent: string | undefined
  onStatus(status: number): void
  /** @param outcome or the error that ended the attempt */
  end(outcome: string | Error): void
}

/** Wraps storage queries in spans; each call settles as `run` does. */
export interface StoreSpans {
  /** @param text without values, which are in the parameters */
  statement<T>(text: string, run: () => Promise<T>): Promise<T>
  /** @param name of the script */
  script<T>(name: string, run: () => Promise<T>): Promise<T>
}
