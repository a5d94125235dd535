// A trace collector: an HTTP server that receives OTLP as JSON and records the spans.
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { expect } from 'vitest'
import { listen } from './upstream.ts'

export interface SentSpan {
  traceId: string
  spanId: string
  /** The ID of the parent span; empty for the first span of a trace. */
  parentSpanId: string
  name: string
  kind: 'internal' | 'server' | 'client'
  attributes: Record<string, string | number>
  hasFailed: boolean
  traceState: string
  resource: Record<string, string | number>
}

export interface Collector {
  readonly url: string
  readonly spans: SentSpan[]
  /** The received requests. Their bodies are not parsed. */
  readonly received: { url: string; headers: IncomingHttpHeaders; body: string }[]
  /** The status code with which the collector responds. */
  status: number
  /** Resolves with the spans of a trace when the traced request has ended. */
  trace(traceId: string): Promise<SentSpan[]>
  close(): Promise<void>
}

export async function startCollector(): Promise<Collector> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    collector.received.push({ url: request.url ?? '', headers: request.headers, body })
    if (collector.status === 200) collector.spans.push(...spansOf(body))
    response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}')
  })
  const collector: Collector = {
    url: await listen(server),
    spans: [],
    received: [],
    status: 200,
    async trace(traceId) {
      const of = () => collector.spans.filter(span => span.traceId === traceId)
      await expect.poll(() => of().map(span => span.kind), { timeout: 15_000 }).toContain('server')
      return of()
    },
    async close() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
  return collector
}

type Attributes = { key: string; value: { stringValue?: string; intValue?: number; doubleValue?: number } }[]

interface Payload {
  resourceSpans: {
    resource: { attributes: Attributes }
    scopeSpans: {
      spans: {
        traceId: string
        spanId: string
        parentSpanId?: string
        traceState?: string
        name: string
        kind: number
        attributes: Attributes
        status: { code?: number }
      }[]
    }[]
  }[]
}

function spansOf(body: string): SentSpan[] {
  const { resourceSpans } = JSON.parse(body) as Payload
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(
        ({ traceId, spanId, parentSpanId = '', traceState = '', name, kind, attributes, status }) => ({
          traceId,
          spanId,
          parentSpanId,
          traceState,
          name,
          // OTLP encodes SpanKind as a number.
          kind: kind === 2 ? ('server' as const) : kind === 3 ? ('client' as const) : ('internal' as const),
          attributes: valuesOf(attributes),
          hasFailed: status.code === 2,
          resource: valuesOf(resource.attributes),
        }),
      ),
    ),
  )
}

function valuesOf(attributes: Attributes): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? value.doubleValue ?? '']),
  )
}
