// The log: one JSON line an event on standard output, readable where that is a terminal.
import { type Logger, pino, stdSerializers } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config/schema.ts'

interface Output {
  isTTY?: boolean
  write(text: string): unknown
}

/** @param output standard output */
export function createLogger({ level }: Config['server']['log'], output: Output): Logger {
  const destination = output.isTTY
    ? pretty({ colorize: true, singleLine: true, translateTime: 'SYS:HH:MM:ss.l', destination: 1 })
    : output
  return pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: faultOf } },
    destination,
  )
}

/**
 * What is said of a fault: its kind, sentence, code and stack. Drivers hang more on their errors (the row that
 * violated a constraint, the command with its arguments), and that may be a secret.
 */
function faultOf(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { type, message, stack } = stdSerializers.err(error)
  const { code } = error as { code?: unknown }
  const cause = error.cause instanceof Error ? faultOf(error.cause) : undefined
  return { type, message, ...(typeof code === 'string' ? { code } : {}), stack, ...(cause ? { cause } : {}) }
}
