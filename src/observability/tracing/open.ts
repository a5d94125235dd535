// Opens tracing if it is on: OpenTelemetry is loaded here, and nowhere else.
import type { Logger } from 'pino'
import type { TracingSettings } from './settings.ts'
import type { Tracing } from './tracing.ts'

interface Options {
  logger: Pick<Logger, 'info' | 'warn'>
  version: string
}

/** Call this once per process; the SDK reads its other settings from the environment. */
export async function openTracing(
  settings: TracingSettings | undefined,
  options: Options,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined
  const { createTracing } = await import('./otel.ts')
  return createTracing(options)
}
