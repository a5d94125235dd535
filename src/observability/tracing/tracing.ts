// What the rest of the program knows of traces. Where there are none it is handed nothing, and none of this is loaded.
import type { IncomingMessage } from 'node:http'

/** The spans of a process. */
export interface Tracing {
  /** Begins the span of a request that has arrived; a good `traceparent` of its own is the parent. */
  begin(request: IncomingMessage, received: ReceivedRequest): RequestTrace
  /** What the stores are asked on a request's behalf. */
  readonly stores: StoreSpans
  /** Sends what is still to be sent. @param time milliseconds; what is not taken by then is dropped */
  close(timeoutMs: number): Promise<void>
}

/** What is known of a request before any guard. */
export interface ReceivedRequest {
  readonly requestId: string
  /** The client's address. */
  readonly client: string
  /** The authority that was asked for, as received. */
  readonly host: string
  /** The declared path, or that of the gateway's own endpoint: what a client wrote is none. */
  readonly template: string | undefined
  /** The route's name, where a route serves it. */
  readonly route: string | undefined
}

/** One request's. */
export interface RequestTrace {
  /** 32 and 16 lower-case hexadecimal digits (W3C Trace Context). */
  readonly traceId: string
  readonly spanId: string
  /** The client's `traceparent` was good: its `tracestate` is of this trace, and goes on. */
  readonly isContinued: boolean
  /** What the stores are asked while `work` goes on, and by what it starts, is its doing. */
  run(work: () => void): void
  /** A guard decides from now on, or none does; the one before has let it through. */
  onGuard(name: string | undefined): void
  /** The guard that decides has not let it through. */
  onGuardFailed(decision: GuardFailure, thrown: unknown): void
  /**
   * It leaves the gateway: what the stores are asked from now on is not its doing.
   * @param isTold whether the upstream receives `traceparent`
   */
  forwardTo(upstream: string, propagates: boolean): UpstreamTrace
  end(result: RequestResult): void
}

/** `error`: a store failed. */
export type GuardFailure = 'refuse' | 'error' | 'client_gone'

export interface RequestResult {
  /** Nothing where the client left before anything was answered. */
  readonly status: number | undefined
  /** As the access log has them. */
  readonly decision: string
  readonly outcome: string | undefined
}

/** What is sent to an upstream for one request. */
export interface UpstreamTrace {
  begin(attempt: Attempt): AttemptSpan
}

export interface Attempt {
  readonly method: string
  /** `scheme://host:port`. */
  readonly origin: string
  /** Path and query; the query is not told. */
  readonly path: string
  /** How often it was sent before. */
  readonly resendCount: number
}

/** One try. */
export interface AttemptSpan {
  /** The field's value; nothing where the upstream is not told. */
  readonly traceparent: string | undefined
  onStatus(status: number): void
  /** @param how an outcome, or the error that ended it */
  end(outcome: string | Error): void
}

/** Around what a store is asked; the promise is the one that `ask` gives. */
export interface StoreSpans {
  /** @param text without values: they stand in parameters */
  statement<T>(text: string, run: () => Promise<T>): Promise<T>
  /** @param name of the script */
  script<T>(name: string, run: () => Promise<T>): Promise<T>
}
