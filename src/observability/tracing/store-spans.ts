// Creates the spans of storage queries (OpenTelemetry's conventions for databases). They contain a summary of the
// statement, without values.
import { type Attributes, type Context, SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api'
import { errorType } from './span-fields.ts'
import type { StoreSpans } from './tracing.ts'

/**
 * @param currentParent returns the parent for the span of the current query. If it returns undefined, the query belongs
 *   to no request and gets no span.
 */
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

/**
 * Returns a short summary of a statement for `db.query.summary`, so that there are few span names. The summary contains
 * all writes of the statement with their tables. If the statement writes nothing, the summary contains the first table
 * that it reads. For example, the summary of `update users set …` is `UPDATE users`.
 */
export function summaryOf(text: string): string {
  const known = summaries.get(text)
  if (known !== undefined) return known
  const summary = summarize(text)
  // The map never grows to this size, because all texts are constants of the program. If that changes, the limit
  // protects the memory.
  if (summaries.size >= 500) summaries.clear()
  summaries.set(text, summary)
  return summary
}

const summaries = new Map<string, string>()

// Matches each write of a statement. The clauses `for update`, `for no key update` and `do update` are excluded,
// because they are not statements.
const writes = /(?<!\b(?:for|key|do) )\b(insert into|update|delete from|lock table) ([a-z_]+)/g

function summarize(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim().toLowerCase()
  const found = [...flat.matchAll(writes)].map(([, verb = '', table]) => `${firstOf(verb)} ${table}`)
  if (found.length > 0) return found.join(' ')
  const [, table] = /\bfrom ([a-z_]+)/.exec(flat) ?? []
  const verb = flat.startsWith('with ') ? 'SELECT' : firstOf(flat)
  return table === undefined ? verb : `${verb} ${table}`
}

function firstOf(words: string): string {
  return (words.split(' ', 1)[0] ?? '').toUpperCase()
}
