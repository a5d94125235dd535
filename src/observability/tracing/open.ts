// Traces where they are on: OpenTelemetry is loaded here, and nowhere else.
import type { Logger } from 'pino'
import type { TracingSettings } from './settings.ts'
import type { Tracing } from './tracing.ts'

interface Options {
  logger: Pick<Logger, 'info' | 'warn'>
  /** The program's. */
  version: string
}

/** To be called once a process; the SDK reads the rest of what it is told from the environment. */
export async function openTracing(
  settings: TracingSettings | undefined,
  options: Options,
): Promise<Tracing | undefined> {
  if (settings === undefined) return undefined
  const { createTracing } = await import('./otel.ts')
  return createTracing(options)
}
