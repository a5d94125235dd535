// Warns about plans that users have, but that are not configured.
import type { GatewayProcess } from '../composition/process.ts'

export interface UnknownPlanLog {
  /** Logs a warning for each unknown plan. Call this at the start, and when a configuration becomes active. */
  check(): void
  stop(): void
}

export function createUnknownPlanLog({
  plans,
  stores,
  logger,
  failureLog,
}: Pick<GatewayProcess, 'plans' | 'stores' | 'logger' | 'failureLog'>): UnknownPlanLog {
  let isStopped = false
  let last = Promise.resolve()
  async function warn(): Promise<void> {
    if (isStopped) return
    try {
      for (const { plan, users } of await stores.planStore.countOthers(plans().names))
        logger.warn({ plan, users }, 'users have a plan that is not configured')
    } catch (error) {
      if (!isStopped) failureLog('users of unknown plans not counted', error)
    }
  }
  return {
    check() {
      // One query runs at a time, because each query may read all users.
      last = last.then(warn)
    },
    stop() {
      isStopped = true
    },
  }
}
