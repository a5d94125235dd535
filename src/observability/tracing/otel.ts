// Traces a process with OpenTelemetry's SDK, and exports the spans in batches, over OTLP/HTTP as JSON.
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
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
import { createBeginRequest, type RecordedRequest } from './request-spans.ts'
import { createStoreSpans } from './store-spans.ts'
import type { Tracing } from './tracing.ts'

type Log = Pick<Logger, 'info' | 'warn'>

interface Options {
  logger: Log
  version: string
}

/**
 * How long a shutdown waits for the collector. The time is short, because losing spans is better than a slow restart.
 */
const maxCloseMs = 2_000

export function createTracing({ logger, version }: Options): Tracing {
  const { tracer, shutdown } = createExport(logger, version)
  // Finds the request to which a storage query belongs. Queries pass through caches and shared lookups that have no
  // reference to a request.
  const activeRequest = new AsyncLocalStorage<RecordedRequest>()
  return {
    begin: createBeginRequest(tracer, activeRequest),
    stores: createStoreSpans(tracer, () => activeRequest.getStore()?.storeParent),
    async close(timeoutMs) {
      const lateController = new AbortController()
      const timedOut = sleep(Math.max(0, Math.min(timeoutMs, maxCloseMs)), undefined, {
        signal: lateController.signal,
      })
      await Promise.race([shutdown(), timedOut.catch(() => {})])
      lateController.abort()
    },
  }
}

/**
 * The minimum time between two logged warnings of the SDK. Without this limit, the SDK would log a warning for every
 * batch.
 */
const warnIntervalMs = 60_000

/**
 * Matches the number of dropped spans in a warning of the SDK about a full queue. After each warning, the SDK counts
 * from zero again. So the gateway adds up the numbers until it logs a warning.
 */
const droppedSpans = /(?<=^Dropped )\d+(?= spans)/

/**
 * Creates the tracer and its export to the collector. While the collector is unreachable, spans are lost, and only one
 * warning is logged.
 */
function createExport(logger: Log, version: string): { tracer: Tracer; shutdown(): Promise<void> } {
  let isUnreachable = false
  let isSettingUp = true
  let lastWarned = Number.NEGATIVE_INFINITY
  let dropped = 0
  const warn = (...args: unknown[]) => {
    const now = performance.now()
    const reason = args.join(' ')
    const count = droppedSpans.exec(reason)
    dropped += Number(count ?? 0)
    // While the collector is unreachable, the log already contains the warning that spans are dropped.
    if (!isSettingUp && (isUnreachable || now - lastWarned < warnIntervalMs)) return
    if (!isSettingUp) lastWarned = now
    logger.warn({ reason: reason.replace(droppedSpans, String(dropped)) }, 'OpenTelemetry')
    if (count !== null) dropped = 0
  }
  const ignore = () => {}
  const onError = (...args: unknown[]) => isSettingUp && warn(...args)
  const sdkLogger = { error: onError, warn, info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(sdkLogger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })

  const exporter = observingResults(new OTLPTraceExporter(), failure => {
    if (isUnreachable === (failure !== undefined)) return
    isUnreachable = !isUnreachable
    if (isUnreachable) logger.warn({ reason: failure }, 'traces cannot be sent; spans are dropped')
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

/** @param onResult called after the export of each batch, with the reason of a failure; undefined means success */
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

/**
 * Returns why an export failed: the status of the response, or the error of the connection. The result never contains
 * text from the collector.
 */
function exportFailureReason(error: (Error & { code?: unknown }) | undefined): string {
  const parts = [error?.code, error?.message].filter(word => word !== undefined && word !== '')
  return parts.length === 0 ? 'the collector did not confirm the spans' : parts.join(' ')
}

/** Describes this process in its traces. Attributes from the environment have priority. */
function resourceOf(version: string) {
  const own = resourceFromAttributes({
    'service.name': 'peage',
    'service.version': version,
    // A unique ID for each process, so that workers and replicas can be distinguished.
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
  })
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }))
}
