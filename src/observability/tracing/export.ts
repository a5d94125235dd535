// Exports spans in batches, over OTLP/HTTP as JSON. An unreachable collector costs spans, and one warning.
import { randomUUID } from 'node:crypto'
import { DiagLogLevel, diag, type Tracer } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from '@opentelemetry/sdk-trace-base'
import type { Logger } from 'pino'

type Log = Pick<Logger, 'info' | 'warn'>

/** Between two of the SDK's own warnings: it emits one for every batch. */
const warnIntervalMs = 60_000

export function createExport(logger: Log, version: string): { tracer: Tracer; shutdown(): Promise<void> } {
  let isUnreachable = false
  let isSettingUp = true
  let lastWarned = Number.NEGATIVE_INFINITY
  const warn = (...words: unknown[]) => {
    const now = performance.now()
    // The log already says that spans are dropped while the collector is unreachable.
    if (!isSettingUp && (isUnreachable || now - lastWarned < warnIntervalMs)) return
    if (!isSettingUp) lastWarned = now
    logger.warn({ reason: words.join(' ') }, 'OpenTelemetry')
  }
  const ignore = () => {}
  const onError = (...words: unknown[]) => isSettingUp && warn(...words)
  const words = { error: onError, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(words, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })

  const exporter = observingResults(new OTLPTraceExporter(), failure => {
    if (isUnreachable === (failure !== undefined)) return
    isUnreachable = !isUnreachable
    if (isUnreachable) logger.warn({ reason: failure }, 'traces cannot be sent: spans are dropped')
    else logger.info({}, 'traces are sent again')
  })
  const provider = new BasicTracerProvider({
    resource: resourceOf(version),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  })
  isSettingUp = false
  return {
    tracer: provider.getTracer('peage', version),
    shutdown: () => provider.shutdown().catch(ignore),
  }
}

/** @param onResult receives why a batch failed, or undefined, for each batch */
function observingResults(
  exporter: SpanExporter,
  onResult: (failure: string | undefined) => void,
): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, result => {
        onResult(result.code === 0 ? undefined : exportFailureReason(result.error))
        done(result)
      }),
    shutdown: () => exporter.shutdown(),
  }
}

/** A response's status, or a connection's failure; never what the collector wrote. */
function exportFailureReason(error: (Error & { code?: unknown }) | undefined): string {
  const words = [error?.code, error?.message].filter(word => word !== undefined && word !== '')
  return words.length === 0 ? 'no answer that the collector took them' : words.join(' ')
}

/** The environment takes precedence. */
function resourceOf(version: string) {
  const own = resourceFromAttributes({
    'service.name': 'peage',
    'service.version': version,
    // Of each process: it tells workers and replicas apart.
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
  })
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
}
