// Spans of storage queries (OpenTelemetry's conventions for databases): which statement, never its values.
import { type Attributes, type Context, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { summaryOf } from './query-summary.ts'
import { errorType } from './span-fields.ts'
import type { StoreSpans } from './tracing.ts'

/** @param currentParent the request that a query is made for; a query for no particular request has no span */
export function createStoreSpans(tracer: Tracer, currentParent: () => Context | undefined): StoreSpans {
  function inSpanOfRequest<T>(attributes: () => Attributes, run: () => Promise<T>): Promise<T> {
    const parent = currentParent()
    return parent === undefined ? run() : inSpan(tracer, parent, attributes(), run)
  }
  return {
    statement: (text, run) =>
      inSpanOfRequest(() => {
        const summary = summaryOf(text)
        return {
          'db.system.name': 'postgresql',
          'db.operation.name': summary.split(' ', 1)[0],
          'db.query.summary': summary,
        }
      }, run),
    script: (name, run) =>
      inSpanOfRequest(
        () => ({
          'db.system.name': 'redis',
          'db.operation.name': 'EVALSHA',
          'db.query.summary': `EVALSHA ${name}`,
        }),
        run,
      ),
  }
}

async function inSpan<T>(
  tracer: Tracer,
  parent: Context,
  attributes: Attributes,
  run: () => Promise<T>,
): Promise<T> {
  const name = String(attributes['db.query.summary'])
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent)
  try {
    return await run()
  } catch (error) {
    span.setAttribute('error.type', errorType(error)).setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}
