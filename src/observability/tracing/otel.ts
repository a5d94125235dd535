// Traces a process with OpenTelemetry's SDK and exporter.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createExport } from './export.ts'
import { createBeginRequest, type RecordedRequest } from './request-spans.ts'
import { createStoreSpans } from './store-spans.ts'
import type { Tracing } from './tracing.ts'

interface Options {
  logger: Pick<Logger, 'info' | 'warn'>
  version: string
}

/** The longest a shutdown waits for the collector: spans are not worth a slow restart. */
const maxCloseMs = 2_000

export function createTracing({ logger, version }: Options): Tracing {
  const { tracer, shutdown } = createExport(logger, version)
  // Storage queries pass through caches and single flights that know of no request.
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
