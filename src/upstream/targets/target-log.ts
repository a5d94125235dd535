// Logs when a target becomes unhealthy and when it is healthy again. If several processes report a target, their states
// are merged into one.
import type { Logger } from 'pino'
import { createStateLog, type StateLog } from '../../observability/state-log.ts'
import type { TargetStatus } from './target-status.ts'

interface Options {
  targetStatus(): Promise<readonly TargetStatus[]>
  logger: Pick<Logger, 'info' | 'warn'>
}

const intervalMs = 1_000
/**
 * If no process reports a target, its last state is kept for this time, because a process may be unable to reply for a
 * moment.
 */
const forgetAfterMs = 60_000

/** @returns a function that stops the log */
export function startTargetLog({ targetStatus, logger }: Options): () => void {
  const logs = new Map<string, { log: StateLog; seenAtMs: number }>()
  let isStopped = false

  function logOf({ upstream, target }: TargetStatus): StateLog {
    const key = `${upstream} ${target}`
    const place = { upstream, target }
    const log =
      logs.get(key)?.log ??
      createStateLog({
        now: () => performance.now(),
        write: (isUp, cause) =>
          isUp
            ? logger.info(place, 'target is healthy again')
            : logger.warn({ ...place, cause }, 'target is unhealthy'),
      })
    logs.set(key, { log, seenAtMs: performance.now() })
    return log
  }

  async function look(): Promise<void> {
    const statuses = await targetStatus().catch(() => [])
    if (isStopped) return
    for (const status of statuses) {
      const cause = causeOf(status)
      if (cause !== undefined) logOf(status).report(false, cause)
      else if (status.isHealthy) logOf(status).report(true)
    }
    for (const [key, { log, seenAtMs }] of logs) {
      if (performance.now() - seenAtMs < forgetAfterMs) continue
      log.stop()
      logs.delete(key)
    }
    timer = setTimeout(look, intervalMs).unref()
  }

  let timer = setTimeout(look, intervalMs).unref()
  return () => {
    isStopped = true
    clearTimeout(timer)
    for (const { log } of logs.values()) log.stop()
  }
}

/**
 * Returns why a target is unhealthy; undefined if it is healthy, unchecked or unresolved. Name lookups have their own
 * log messages.
 */
function causeOf({ checks, problem, circuit, isEjected }: TargetStatus): string | undefined {
  if (checks === 'failing') return problem ?? undefined
  // A half-open circuit does not prove that the target is healthy.
  if (circuit === 'open' || circuit === 'half_open') return 'circuit breaker is open'
  return isEjected ? 'requests failed' : undefined
}
