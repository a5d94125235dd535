// Creates the spans of one request: for the request, its guards and its upstream attempts (OpenTelemetry's conventions
// for HTTP).
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { errorType, methodFields, receivedFields, spanName } from './span-fields.ts'
import { readParent, writeParent } from './traceparent.ts'
import type {
  GuardFailure,
  ReceivedRequest,
  RequestResult,
  RequestTrace,
  Tracing,
  UpstreamTrace,
} from './tracing.ts'
import { recordedUpstream } from './upstream-spans.ts'

/**
 * The guards that have a span. These guards may query storage, or decide according to the plan or email of the user.
 * The other guards only compare values in memory.
 */
const guardsWithSpans: ReadonlySet<string> = new Set([
  'authenticate',
  'rate_limit',
  'plan',
  'verified',
  'free_daily',
  'quota',
])

export function createBeginRequest(
  tracer: Tracer,
  activeRequest: AsyncLocalStorage<RecordedRequest>,
): Tracing['begin'] {
  return (request, received) => {
    const { traceparent, tracestate } = request.headers
    const parent = readParent(traceparent, tracestate)
    const parentContext = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
    const span = startRequest(tracer, parentContext, request, received)
    const isContinued = parent !== undefined
    return span.isRecording()
      ? new RecordedRequest(tracer, activeRequest, span, isContinued)
      : unsampledTrace(span, isContinued)
  }
}

function startRequest(
  tracer: Tracer,
  parentContext: Context,
  request: IncomingMessage,
  received: ReceivedRequest,
): Span {
  const { method } = received
  return tracer.startSpan(
    spanName(method, received.template),
    {
      kind: SpanKind.SERVER,
      attributes: { ...methodFields(method), ...receivedFields(request, received) },
    },
    parentContext,
  )
}

export class RecordedRequest implements RequestTrace {
  readonly traceId: string
  readonly spanId: string
  readonly isContinued: boolean
  /**
   * The parent of the spans of storage queries. Undefined after the gateway has begun to forward the request, because
   * later queries do not belong to the request.
   */
  storeParent: Context | undefined
  readonly #tracer: Tracer
  readonly #activeRequest: AsyncLocalStorage<RecordedRequest>
  readonly #span: Span
  readonly #context: Context
  #guard: Span | undefined

  constructor(
    tracer: Tracer,
    activeRequest: AsyncLocalStorage<RecordedRequest>,
    span: Span,
    isContinued: boolean,
  ) {
    const { traceId, spanId } = span.spanContext()
    this.traceId = traceId
    this.spanId = spanId
    this.isContinued = isContinued
    this.#tracer = tracer
    this.#activeRequest = activeRequest
    this.#span = span
    this.#context = trace.setSpan(ROOT_CONTEXT, span)
    this.storeParent = this.#context
  }

  run(work: () => void): void {
    this.#activeRequest.run(this, work)
  }

  onGuard(name: string | undefined): void {
    this.#endGuard('pass')
    if (name === undefined || !guardsWithSpans.has(name)) return
    const attributes = { 'peage.guard': name }
    this.#guard = this.#tracer.startSpan(
      `guard ${name}`,
      { kind: SpanKind.INTERNAL, attributes },
      this.#context,
    )
    this.storeParent = trace.setSpan(this.#context, this.#guard)
  }

  onGuardFailed(decision: GuardFailure, thrown: unknown): void {
    if (decision === 'error') {
      this.#guard?.setAttribute('error.type', errorType(thrown)).setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#endGuard(decision)
  }

  #endGuard(decision: GuardFailure | 'pass'): void {
    this.storeParent = this.#context
    this.#guard?.setAttribute('peage.guard.decision', decision).end()
    this.#guard = undefined
  }

  forwardTo(upstream: string, propagates: boolean): UpstreamTrace {
    this.storeParent = undefined
    return recordedUpstream({ tracer: this.#tracer, context: this.#context, upstream, propagates })
  }

  end({ status, decision, outcome }: RequestResult): void {
    this.#endGuard('client_gone')
    this.storeParent = undefined
    const span = this.#span
    span.setAttribute('peage.decision', decision)
    if (outcome !== undefined) span.setAttribute('peage.outcome', outcome)
    if (status !== undefined) span.setAttribute('http.response.status_code', status)
    // A 4xx status is an error of the client, so the span does not count as failed. If the response is incomplete, the
    // span counts as failed with every status.
    const failureType = outcome === 'broken' ? outcome : (status ?? 0) >= 500 ? String(status) : undefined
    if (failureType !== undefined) {
      span.setAttribute('error.type', failureType).setStatus({ code: SpanStatusCode.ERROR })
    }
    span.end()
  }
}

/**
 * Returns the trace of a request that is not sampled. The trace records nothing. The header for the upstream marks the
 * request as not sampled.
 */
function unsampledTrace(span: Span, isContinued: boolean): RequestTrace {
  const context = span.spanContext()
  const traceparent = writeParent(context)
  const noop = () => {}
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    isContinued,
    run: work => work(),
    onGuard: noop,
    onGuardFailed: noop,
    forwardTo: (_upstream, propagates) => ({
      begin: () => ({ traceparent: propagates ? traceparent : undefined, onStatus: noop, end: noop }),
    }),
    end: noop,
  }
}
