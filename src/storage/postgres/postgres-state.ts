// Whether Postgres responds, from the results of what the gateway asks it anyway.
import type { StateLog } from '../../observability/state-log.ts'
import { StorageError } from '../database.ts'

export interface PostgresState {
  /** Notes how a query or a connection ends. @returns the same promise */
  observe<T>(work: Promise<T>): Promise<T>
}

interface Options {
  log: StateLog
  /** A monotonic clock: `performance.now()`. */
  now(): number
}

/** One lost connection is replaced within this time. */
const confirmMs = 1_000

/** Postgres is down when nothing has succeeded for a second and the connection is what fails. */
export function createPostgresState({ log, now }: Options): PostgresState {
  let succeededAtMs = Number.NEGATIVE_INFINITY
  let failingSinceMs: number | undefined

  function onSuccess(): void {
    succeededAtMs = now()
    failingSinceMs = undefined
    log.report(true)
  }

  function onFailure(error: unknown, startedAtMs: number): void {
    if (!isOfConnection(error)) return
    failingSinceMs ??= Math.max(startedAtMs, succeededAtMs)
    if (now() - failingSinceMs >= confirmMs) log.report(false, error.message.replace(/^database: /, ''))
  }

  return {
    observe(work) {
      const startedAtMs = now()
      work.then(onSuccess, error => onFailure(error, startedAtMs))
      return work
    },
  }
}

/**
 * SQLSTATEs of a server that refuses the connection: 08 connection, 28 authorization, 3D unknown database, 57P shutdown
 * and start, 53300 no connection left, 25006 a standby. Without a SQLSTATE there was no response.
 */
function isOfConnection(error: unknown): error is StorageError {
  return error instanceof StorageError && /^(08|28|3D|57P|53300|25006)|^$/.test(error.code ?? '')
}
