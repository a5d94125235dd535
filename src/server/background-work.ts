// Runs the background work of the gateway: alerts, events, mails, and pruning. It runs only once, not in each worker.
import { createReadMailedCode } from '../accounts/codes/code-derivation.ts'
import type { GatewayProcess } from '../composition/process.ts'
import { createMailService, type MailService } from '../mail/mail-service.ts'
import { createPruner } from '../storage/pruner.ts'
import { startTargetLog } from '../upstream/targets/target-log.ts'
import { createEventService } from '../webhooks/events/event-service.ts'
import { type AlertService, alertSettingsOf, createAlertService } from '../webhooks/webhook-services.ts'
import type { DataPlane } from './serve.ts'
import { createUnknownPlanLog } from './unknown-plans.ts'

export interface BackgroundWork
  extends Pick<AlertService, 'alerts' | 'deliveries'>,
    Pick<MailService, 'mails'> {
  /**
   * Logs a warning for each plan that users have, but that is not in the new configuration. Call this after a reload.
   */
  checkPlans(): void
  /** Stops sending alerts, events and mails. @param grace how long running attempts may continue, in milliseconds */
  endSending(grace: number): Promise<void>
  /** Stops everything. The caller closes the storage. */
  close(): Promise<void>
}

export function startBackgroundWork(
  gatewayProcess: GatewayProcess,
  { targetStatus }: Pick<DataPlane, 'targetStatus'>,
): BackgroundWork {
  const { config, storage, stores, codeDerivation, clock, logger, failureLog, metrics } = gatewayProcess
  const { database } = storage
  const alerts = createAlertService(
    config.derive(({ webhooks }) => alertSettingsOf(webhooks)),
    gatewayProcess,
    metrics.counters.deliveries,
  )
  const readCode = createReadMailedCode(database, codeDerivation)
  const mail = createMailService(
    () => config.get().mail,
    { ...gatewayProcess, readCode },
    metrics.counters.mails,
  )
  const events = createEventService(config.get, {
    database,
    clock,
    random: Math.random,
    outcomes: metrics.counters.events,
    onError: failureLog,
    onNotTaken: (problem, failures) =>
      logger.warn({ problem, failures }, 'events not accepted by the events.url service'),
  })
  const { sessions, codeIssues, quotaRecords, userKeys, signInCodes } = stores
  const pruner = createPruner({
    pruneBatch: async (now, limit) =>
      Math.max(
        await sessions.prune(now, limit),
        await codeIssues.prune(now, limit),
        await quotaRecords.prune(limit),
        await userKeys.prune(now, limit),
        await signInCodes.prune(now, limit),
      ),
    clock,
    onError: error => failureLog('expired sessions and codes not pruned', error),
  })
  const stopTargetLog = startTargetLog({ targetStatus, logger })
  const unknownPlans = createUnknownPlanLog(gatewayProcess)
  unknownPlans.check()
  const endSending = async (grace: number) => {
    await Promise.all([alerts, mail, events].map(service => service.stop(grace)))
  }
  return {
    alerts: alerts.alerts,
    deliveries: alerts.deliveries,
    mails: mail.mails,
    checkPlans: unknownPlans.check,
    endSending,
    close() {
      pruner.stop()
      stopTargetLog()
      unknownPlans.stop()
      return endSending(0)
    },
  }
}
