// What the environment configures besides the variables that the file names: tracing.
import {
  type TracingSettings,
  TracingSettingsError,
  tracingSettings,
} from '../observability/tracing/settings.ts'
import type { Io } from './io.ts'

/** @returns the settings if tracing is on, or the problems with them, a line each */
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
