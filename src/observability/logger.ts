// Creates the log: one JSON line per event on standard output, or pretty-printed lines on a terminal.
import { type Logger, pino, stdSerializers } from 'pino'
import type { Config } from '../config/sections/schema.ts'

export interface Output {
  isTTY?: boolean
  write(text: string): unknown
}

const destinations = new WeakMap<Logger, Output>()

/** @param base fields that every line contains, except the lines of the access log */
export async function createLogger(
  { level }: Config['server']['log'],
  output: Output,
  base: object | null = null,
): Promise<Logger> {
  const destination = output.isTTY
    ? (await import('pino-pretty')).default({
        colorize: true,
        singleLine: true,
        translateTime: 'SYS:HH:MM:ss.l',
        destination: 1,
      })
    : output
  const logger = pino(
    { level, base, timestamp: () => `,"time":"${now()}"`, serializers: { err: serializeError } },
    destination,
  )
  destinations.set(logger, destination)
  return logger
}

/**
 * Creates a function that writes lines with the level `info` to the output of `logger`.
 * @returns the function, which writes one line; it receives the members of a JSON object as text, without the braces,
 *   and adds the level and the time
 */
export function lineWriter(logger: Logger): (members: string) => void {
  const destination = destinations.get(logger)
  if (destination === undefined) throw new Error('lineWriter needs a logger of createLogger')
  return members => destination.write(`{"level":30,"time":"${now()}",${members}}\n`)
}

let latestMs = 0
let latestText = ''
let secondMs = 0
let secondText = ''

/**
 * Returns the current time as RFC 3339 in UTC. The text up to the seconds is cached, because most lines are written in
 * the same second as the previous line.
 */
function now(): string {
  const nowMs = Date.now()
  if (nowMs === latestMs) return latestText
  const sinceSecondMs = nowMs - secondMs
  if (sinceSecondMs < 0 || sinceSecondMs >= 1000) {
    secondMs = nowMs - (nowMs % 1000)
    secondText = new Date(secondMs).toISOString().slice(0, 20)
  }
  latestMs = nowMs
  latestText = `${secondText}${String(nowMs - secondMs).padStart(3, '0')}Z`
  return latestText
}

/**
 * Logs only an error's type, message, code, stack and cause. Drivers attach more data to an error, for example the row
 * that violated a constraint, or the command with its arguments. This data may be secret.
 */
function serializeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error }
  const { type, message, stack } = stdSerializers.err(error)
  const { code } = error as { code?: unknown }
  const cause = error.cause instanceof Error ? serializeError(error.cause) : undefined
  return { type, message, ...(typeof code === 'string' ? { code } : {}), stack, ...(cause ? { cause } : {}) }
}

/**
 * Makes a request target safe to log. Removes the query and the authority, which may contain secrets, and limits the
 * length to 512 characters.
 */
export function redactPath(target: string): string {
  const queryStart = target.indexOf('?')
  const path = queryStart === -1 ? target : target.slice(0, queryStart)
  return (path.startsWith('/') ? path : path.replace(/^[^/]*:\/\/[^/]*/, '')).slice(0, 512)
}
