// Defines the tracing interface for the rest of the program. If tracing is disabled, there is no `Tracing` object, and
// OpenTelemetry is not loaded.
import type { IncomingMessage } from 'node:http'

export interface Tracing {
  /**
   * Begins the span of a received request. If the request has a valid `traceparent`, it identifies the parent of the
   * span.
   */
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
  /**
   * The request target as received. For the question of a proxy (`docs/forward-auth.md`), the target of the request
   * that the question is about.
   */
  readonly url: string
  readonly client: string
  /** The host and port that the client requested, as received. */
  readonly host: string
  /** The path as declared for the route or for the endpoint of the gateway. Never the path that the client sent. */
  readonly template: string | undefined
  readonly route: string | undefined
}

export interface RequestTrace {
  /** `traceId` has 32 and `spanId` has 16 lower-case hexadecimal digits (W3C Trace Context). */
  readonly traceId: string
  readonly spanId: string
  /**
   * Whether the client sent a valid `traceparent`. If so, the gateway continues the client's trace and keeps the
   * client's `tracestate`.
   */
  readonly isContinued: boolean
  /**
   * Runs `work`. The storage queries of `work` belong to this request, including the queries of asynchronous calls that
   * `work` starts.
   */
  run(work: () => void): void
  /** Call this when a guard begins. @param name the name of the guard; undefined after the last guard */
  onGuard(name: string | undefined): void
  /** Call this when the current guard has ended without allowing the request. */
  onGuardFailed(decision: GuardFailure, thrown: unknown): void
  /**
   * Call this when the gateway begins to forward the request. Later storage queries do not belong to the request.
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
  /** The value of `traceparent` for the upstream. Undefined if the upstream does not receive this header. */
  readonly traceparent: string | undefined
  onStatus(status: number): void
  /** @param outcome the outcome, or the error that ended the attempt */
  end(outcome: string | Error): void
}

/** Wraps storage queries in spans. Each method settles with the result or the error of `run`. */
export interface StoreSpans {
  /** @param text the SQL statement without values; the values are in the parameters */
  statement<T>(text: string, run: () => Promise<T>): Promise<T>
  script<T>(name: string, run: () => Promise<T>): Promise<T>
}
