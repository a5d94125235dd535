// Creates the spans of upstream attempts. Each attempt has its own span, and the upstream receives the ID of this span.
import { type Context, type Span, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { redactPath } from '../logger.ts'
import { errorType, methodFields, spanName } from './span-fields.ts'
import { writeParent } from './traceparent.ts'
import type { Attempt, AttemptSpan, UpstreamTrace } from './tracing.ts'

interface Options {
  tracer: Tracer
  context: Context
  upstream: string
  propagates: boolean
}

export function recordedUpstream({ tracer, context, upstream, propagates }: Options): UpstreamTrace {
  return {
    begin(attempt) {
      const attributes = { ...attemptFields(attempt), 'peage.upstream': upstream }
      const span = tracer.startSpan(
        spanName(attempt.method, undefined),
        { kind: SpanKind.CLIENT, attributes },
        context,
      )
      return attemptSpan(span, propagates)
    },
  }
}

function attemptFields({ method, origin, path, resendCount }: Attempt) {
  const { protocol, hostname, port } = new URL(origin)
  return {
    ...methodFields(method),
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
    'url.full': origin + redactPath(path),
    'network.protocol.version': '1.1',
    ...(resendCount === 0 ? {} : { 'http.request.resend_count': resendCount }),
  }
}

function attemptSpan(span: Span, propagates: boolean): AttemptSpan {
  const fail = (type: string) =>
    span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
  return {
    traceparent: propagates ? writeParent(span.spanContext()) : undefined,
    onStatus(status) {
      span.setAttribute('http.response.status_code', status)
      // This span describes the gateway as a client of the upstream. For a client, a 4xx status is an error too
      // (OpenTelemetry's conventions for HTTP).
      if (status >= 400) fail(String(status))
    },
    end(outcome) {
      if (outcome instanceof Error) fail(errorType(outcome))
      else if (outcome === 'broken') fail(outcome)
      else if (outcome === 'client_gone') span.setAttribute('peage.outcome', outcome)
      span.end()
    },
  }
}
