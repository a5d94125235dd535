// Logs repeated store failures: the first at once, then at most one line a minute with a count.
import type { Clock } from '../clock.ts'
import { createLogThrottle } from '../observability/log-throttle.ts'
import { StorageError } from './database.ts'
import { ScriptError } from './redis/redis-scripts.ts'

/**
 * @param text names what failed, and is the same for every failure of its kind
 * @param fields of the line, evaluated only when the line is written
 */
export type FailureLog = (text: string, error: unknown, fields?: () => object) => void

interface Dependencies {
  logger: { warn(fields: object, text: string): void }
  clock: Clock
}

/**
 * A store failure is logged with its reason, without a stack, and with the number of failures since the previous
 * line. Any other error is a bug: each one is logged, with its stack.
 */
export function createFailureLog({ logger, clock }: Dependencies): FailureLog {
  /** By text and SQLSTATE: an outage must not hide a faulty statement. */
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
