// Logs what goes on failing for as long as a store is away: at once, then at most once a minute with how often.
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { StorageError } from './database.ts'

/**
 * @param text what does not work; it says nothing that differs from one failure to the next
 * @param fields of the line, read where it is written
 */
export type FailureLog = (text: string, error: unknown, fields?: () => object) => void

/**
 * A failure of the store is a line with its reason, without a stack, and with how many there were since the line before.
 * Any other error is a fault of the program: each is written, with its stack.
 */
export function createFailureLog({ logger, clock }: { logger: Logger; clock: Clock }): FailureLog {
  /** By text and SQLSTATE: an outage must not hide that a statement is wrong. */
  const lines = new Map<string, { at: number; unwritten: number }>()
  return (text, error, fields) => {
    if (!(error instanceof StorageError)) {
      logger.warn({ ...fields?.(), err: error }, text)
      return
    }
    const name = `${error.code ?? ''} ${text}`
    const now = clock.now()
    const line = lines.get(name)
    if (line !== undefined && now - line.at < interval) {
      line.unwritten += 1
      return
    }
    lines.set(name, { at: now, unwritten: 0 })
    logger.warn({ ...fields?.(), reason: error.message, failures: 1 + (line?.unwritten ?? 0) }, text)
  }
}

/** Milliseconds. */
const interval = 60_000
