// Spans of what the stores are asked (OpenTelemetry's conventions for databases): which statement, never its values.
import { type Attributes, type Context, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { errorType } from './error-type.ts'
import { summaryOf } from './query-summary.ts'
import type { StoreSpans } from './tracing.ts'

/** @param parentNow whose doing it is; nobody's in particular has no span */
export function createStoreSpans(tracer: Tracer, parentNow: () => Context | undefined): StoreSpans {
  function around<T>(attributes: () => Attributes, ask: () => Promise<T>): Promise<T> {
    const parent = parentNow()
    return parent === undefined ? ask() : spanned(tracer, parent, attributes(), ask)
  }
  return {
    statement: (text, ask) =>
      around(() => {
        const summary = summaryOf(text)
        return {
          'db.system.name': 'postgresql',
          'db.operation.name': summary.split(' ', 1)[0],
          'db.query.summary': summary,
        }
      }, ask),
    script: (name, ask) =>
      around(
        () => ({
          'db.system.name': 'redis',
          'db.operation.name': 'EVALSHA',
          'db.query.summary': `EVALSHA ${name}`,
        }),
        ask,
      ),
  }
}

async function spanned<T>(
  tracer: Tracer,
  parent: Context,
  attributes: Attributes,
  ask: () => Promise<T>,
): Promise<T> {
  const name = String(attributes['db.query.summary'])
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent)
  try {
    return await ask()
  } catch (error) {
    span.setAttribute('error.type', errorType(error)).setStatus({ code: SpanStatusCode.ERROR })
    throw error
  } finally {
    span.end()
  }
}
