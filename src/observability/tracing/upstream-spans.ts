// The spans of what is sent to an upstream: each try has its own, and its upstream is told of that one.
import { type Context, type Span, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { loggablePath } from '../redact-path.ts'
import { errorType } from './error-type.ts'
import { methodFields, nameOf } from './span-fields.ts'
import { writeParent } from './traceparent.ts'
import type { SentRequest, TrySpan, UpstreamTrace } from './tracing.ts'

interface Parts {
  tracer: Tracer
  /** The request's. */
  context: Context
  upstream: string
  isTold: boolean
}

export function recordedUpstream({ tracer, context, upstream, isTold }: Parts): UpstreamTrace {
  return {
    begin(sent) {
      const attributes = { ...sentFields(sent), 'peage.upstream': upstream }
      const span = tracer.startSpan(
        nameOf(sent.method, undefined),
        { kind: SpanKind.CLIENT, attributes },
        context,
      )
      return trySpan(span, isTold)
    },
  }
}

function sentFields({ method, origin, path, resent }: SentRequest) {
  const { protocol, hostname, port } = new URL(origin)
  return {
    ...methodFields(method),
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
    'url.full': origin + loggablePath(path),
    'network.protocol.version': '1.1',
    ...(resent === 0 ? {} : { 'http.request.resend_count': resent }),
  }
}

function trySpan(span: Span, isTold: boolean): TrySpan {
  const fail = (type: string) =>
    span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR })
  return {
    traceparent: isTold ? writeParent(span.spanContext()) : undefined,
    onStatus(status) {
      span.setAttribute('http.response.status_code', status)
      // To whoever asked, an error of either kind is one.
      if (status >= 400) fail(String(status))
    },
    end(how) {
      if (how instanceof Error) fail(errorType(how))
      else if (how === 'broken') fail(how)
      else if (how === 'client_gone') span.setAttribute('peage.outcome', how)
      span.end()
    },
  }
}
