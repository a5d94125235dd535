// Defines the tracing interface for the rest of the program. If tracing is disabled, no instance exists and nothing is
// loaded.
import type { IncomingMessage } from 'node:http'

export interface Tracing {
  /** Begins the span of a received request. Its `traceparent`, if valid, is the parent. */
  begin(request: IncomingMessage, received: ReceivedRequest): RequestTrace
  readonly stores: StoreSpans
  /**
   * Sends the remaining spans.
   * @param timeoutMs the time limit; spans that the collector has not accepted by then are lost
   */
  close(timeoutMs: number): Promise<void>
}

export interface ReceivedRequest {
  readonly requestId: string
  readonly method: string
  /** The request target as received. If a proxy asks about a request, the target of this request. */
  readonly url: string
  readonly client: string
  /** The requested authority, as received. */
  readonly host: string
  /** The declared path of the route or of the gateway's endpoint, never the client's path. */
  readonly template: string | undefined
  readonly route: string | undefined
}

export interface RequestTrace {
  /** 32 and 16 lower-case hexadecimal digits (W3C Trace Context). */
  readonly traceId: string
  readonly spanId: string
  /** Whether the client's `traceparent` was valid. Its `tracestate` then belongs to this trace and is passed on. */
  readonly isContinued: boolean
  /** Runs `work`. The storage queries of `work`, and of everything that it starts, then belong to this request. */
  run(work: () => void): void
  /** Call this when a guard begins. @param name the name of the guard; undefined after the last guard */
  onGuard(name: string | undefined): void
  /** Call this when the current guard has ended without allowing the request. */
  onGuardFailed(decision: GuardFailure, thrown: unknown): void
  /**
   * Call this when the request leaves the gateway. Later storage queries do not belong to the request.
   * @param propagates whether the upstream receives `traceparent`
   */
  forwardTo(upstream: string, propagates: boolean): UpstreamTrace
  end(result: RequestResult): void
}

/** `error` means that storage failed. */
export type GuardFailure = 'refuse' | 'error' | 'client_gone'

export interface RequestResult {
  /** Undefined if the client disconnected before a response began. */
  readonly status: number | undefined
  /** The decision, as in the access log. */
  readonly decision: string
  readonly outcome: string | undefined
}

export interface UpstreamTrace {
  begin(attempt: Attempt): AttemptSpan
}

export interface Attempt {
  readonly method: string
  /** `scheme://host:port`. */
  readonly origin: string
  /** The path with the query. Only the path is recorded. */
  readonly path: string
  /** How many times the request was sent before this attempt. */
  readonly resendCount: number
}

export interface AttemptSpan {
  /** The value of the header; undefined if it is not propagated. */
  readonly traceparent: string | undefined
  onStatus(status: number): void
  /** @param outcome the outcome, or the error that ended the attempt */
  end(outcome: string | Error): void
}

/** Wraps storage queries in spans. Each call settles like `run`. */
export interface StoreSpans {
  /** @param text the SQL statement without values; the values are in the parameters */
  statement<T>(text: string, run: () => Promise<T>): Promise<T>
  script<T>(name: string, run: () => Promise<T>): Promise<T>
}
