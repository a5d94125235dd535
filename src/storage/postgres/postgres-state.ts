// Determines whether Postgres responds, from the results of the gateway's regular queries.
import type { StateLog } from '../../observability/state-log.ts'
import { StorageError } from '../database.ts'

export interface PostgresState {
  /** Observes whether a query or an attempt to connect succeeds. @returns the promise `work` */
  observe<T>(work: Promise<T>): Promise<T>
}

interface Options {
  log: StateLog
  /** A monotonic clock, for example `performance.now()`. */
  now(): number
}

/**
 * Postgres counts as down only if failures last this long. If only a single connection is lost, it is replaced within
 * this time.
 */
const confirmMs = 1_000

/** Reports Postgres as down if connections fail and no query has succeeded for one second. */
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
 * Returns whether the error concerns the connection, not the statement. These SQLSTATEs mean that the server refuses or
 * ends the connection: 08 connection, 28 authorization, 3D unknown database, 57P shutdown and start, 53300 too many
 * connections, 25006 standby. Without a SQLSTATE, there was no response.
 */
function isOfConnection(error: unknown): error is StorageError {
  return error instanceof StorageError && /^(08|28|3D|57P|53300|25006)|^$/.test(error.code ?? '')
}
