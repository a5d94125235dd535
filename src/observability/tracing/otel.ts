// The spans of a process, made by OpenTelemetry's SDK and sent by its exporter.
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createExport } from './export.ts'
import { createBegin, type RecordedRequest } from './request-spans.ts'
import { createStoreSpans } from './store-spans.ts'
import type { Tracing } from './tracing.ts'

interface Parts {
  logger: Pick<Logger, 'info' | 'warn'>
  version: string
}

/** Milliseconds that a stop waits for a collector at most: spans are not worth a slow restart. */
const longestClose = 2_000

export function createTracing({ logger, version }: Parts): Tracing {
  const { tracer, shutdown } = createExport(logger, version)
  // What the stores are asked passes through caches and single flights that know of no request.
  const asking = new AsyncLocalStorage<RecordedRequest>()
  return {
    begin: createBegin(tracer, asking),
    stores: createStoreSpans(tracer, () => asking.getStore()?.parent),
    async close(time) {
      const timeIsUp = new AbortController()
      const late = sleep(Math.max(0, Math.min(time, longestClose)), undefined, { signal: timeIsUp.signal })
      await Promise.race([shutdown(), late.catch(() => {})])
      timeIsUp.abort()
    },
  }
}
