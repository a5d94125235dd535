// A process's log on standard output: in batches, and in whole lines if other processes write there too.
import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../config/schema/schema.ts'
import { createLogBuffer } from './log-batches.ts'
import { createLogger } from './logger.ts'
import { createWholeLineWriter } from './whole-lines.ts'

interface LogOptions {
  /** Other processes write to the same output. */
  isShared: boolean
  /** Logged with every line except those of requests. */
  worker?: number
}

/** Call this once per process. */
export function openLog(
  stdout: Writable & { isTTY?: boolean },
  settings: Config['server']['log'],
  { isShared, worker }: LogOptions,
): Logger {
  const buffer = createLogBuffer(isShared ? createWholeLineWriter(stdout) : stdout)
  process.once('exit', buffer.flush)
  // The reader of the log may go away; the gateway keeps running.
  stdout.on('error', () => {})
  const logger = createLogger(settings, stdout.isTTY ? stdout : buffer)
  return worker === undefined ? logger : logger.child({ worker })
}
