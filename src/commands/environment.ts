// What a gateway takes from its environment besides what its file names: whether there are traces.
import {
  type TracingSettings,
  TracingSettingsError,
  tracingSettings,
} from '../observability/tracing/settings.ts'
import type { Io } from './io.ts'

/** @returns the settings, where traces are on, or what stands against them, a line each */
export function readTracing(env: Io['env']): {
  traces?: TracingSettings | undefined
  problems: readonly string[]
} {
  try {
    return { traces: tracingSettings(env), problems: [] }
  } catch (error) {
    if (!(error instanceof TracingSettingsError)) throw error
    return { problems: error.problems }
  }
}
