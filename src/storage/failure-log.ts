// Logs repeated store failures. The first failure is logged immediately. After that, at most one line per minute is
// logged, with the number of failures.
import type { Clock } from '../clock.ts'
import { createLogThrottle } from '../observability/log-throttle.ts'
import { StorageError } from './database.ts'
import { ScriptError } from './redis/redis-scripts.ts'

/**
 * @param text a fixed text that is the same for all failures of one kind
 * @param fields additional fields, evaluated only if the line is logged
 */
export type FailureLog = (text: string, error: unknown, fields?: () => object) => void

interface Dependencies {
  logger: { warn(fields: object, text: string): void }
  clock: Clock
}

/**
 * Creates the log. The line of a store failure contains the reason and the number of failures since the last line, but
 * no stack. Any other error is a bug, so its line always contains a stack.
 */
export function createFailureLog({ logger, clock }: Dependencies): FailureLog {
  /**
   * Counts failures separately for each text and each SQLSTATE. So the failures of an outage do not hide a faulty
   * statement.
   */
  const throttle = createLogThrottle(clock)
  return (text, error, fields) => {
    if (!(error instanceof StorageError || error instanceof ScriptError)) {
      logger.warn({ ...fields?.(), err: error }, text)
      return
    }
    const code = error instanceof StorageError ? error.code : ''
    const failures = throttle(`${code} ${text}`)
    if (failures !== undefined) logger.warn({ ...fields?.(), reason: error.message, failures }, text)
  }
}
