// A process' log on its standard output: in batches, and in whole lines where other processes write there too.
import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../config/schema/schema.ts'
import { createLogBatches } from './log-batches.ts'
import { createLogger } from './logger.ts'
import { createWholeLines } from './whole-lines.ts'

interface Shared {
  /** Other processes write to the same output. */
  isShared: boolean
  /** Stands in every line but those of requests. */
  worker?: number
}

/** To be called once a process. */
export function openLog(
  stdout: Writable & { isTTY?: boolean },
  settings: Config['server']['log'],
  { isShared, worker }: Shared,
): Logger {
  const batches = createLogBatches(isShared ? createWholeLines(stdout) : stdout)
  process.once('exit', batches.flush)
  // Whoever reads the log may go away; the gateway does not.
  stdout.on('error', () => {})
  const logger = createLogger(settings, stdout.isTTY ? stdout : batches)
  return worker === undefined ? logger : logger.child({ worker })
}
