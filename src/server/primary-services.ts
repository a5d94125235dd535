// Runs once, however many workers serve: the admin listener, alerts, events, mails, and pruning of what expired.
import { randomBytes } from 'node:crypto'
import { createAccountExportStore } from '../accounts/account-export-store.ts'
import { createCodeDerivation, createReadMailedCode } from '../accounts/codes/code-derivation.ts'
import { createCodeIssueStore } from '../accounts/codes/code-issue-store.ts'
import { createCodeKeys } from '../accounts/codes/code-key-store.ts'
import { createSessionStore } from '../accounts/session-store.ts'
import type { ExplainDependencies } from '../admin/api/explain-request.ts'
import { createAuditStore } from '../admin/audit-store.ts'
import {
  type ConfigurationRecord,
  createConfigurationRecord,
  type ReloadOutcome,
} from '../admin/configuration-record.ts'
import { readConsoleAssets } from '../admin/console/assets.ts'
import { type ConsoleSessions, createConsoleSessions } from '../admin/console/console-sessions.ts'
import { createHealth } from '../admin/health.ts'
import { createAdminListener } from '../admin/listener.ts'
import { createOverviewHistory, sampleEachStep } from '../admin/overview.ts'
import { createUserDetailsStore } from '../admin/user-details-store.ts'
import type { Dependencies } from '../composition/dependencies.ts'
import { createChangeRecorder } from '../composition/record-changes.ts'
import type { Listing } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'
import { createRequestIdFor } from '../gate/parsing/request-ids.ts'
import { createApiTokenStore } from '../identity/api-tokens/api-token-store.ts'
import { createMailService, type MailService } from '../mail/mail-service.ts'
import { type MetricsPart, mergedText } from '../observability/metrics/exposition.ts'
import { createPruner } from '../storage/pruner.ts'
import { startTargetLog } from '../upstream/targets/target-log.ts'
import { createUserDirectory } from '../users/user-directory.ts'
import { createUserStore, type UserStore } from '../users/user-store.ts'
import { packageFacts } from '../version.ts'
import { createEventService, type EventSettings } from '../webhooks/events/event-service.ts'
import { type AlertService, createAlertService } from '../webhooks/webhook-services.ts'
import { createWebhookStore } from '../webhooks/webhook-store.ts'
import { type AdminSettings, adminSettingsOf } from './admin-settings.ts'
import { createDrain, type Drain } from './drain.ts'
import { createRunningExplain } from './running-explain.ts'
import { addressOf, type DataPlane } from './serve.ts'

export interface PrimaryServices {
  /** Undefined without an admin listener. */
  readonly adminAddress: string | undefined
  applyConfig(config: Config): void
  /** Notes what came of a reload, for operators. */
  reloaded(outcome: ReloadOutcome): void
  /** Is not ready from now on, and sends no more alerts, events and mails. @param grace milliseconds for those in flight */
  beginStop(grace: number): Promise<void>
  /** Closes everything it opened; the caller closes the storage. @param time milliseconds for operators' calls in flight */
  close(time: number): Promise<void>
}

/** @throws if the admin listener cannot listen, with nothing left open */
export async function startPrimaryServices(
  dependencies: Dependencies,
  serving: Pick<DataPlane, 'changesVisible' | 'targetStatus' | 'workers'>,
  listing?: Listing,
): Promise<PrimaryServices> {
  const { storage, clock, logger, failureLog, metrics } = dependencies
  const sessions = createSessionStore(storage.database)
  const webhooks = createAlertService(dependencies.config.webhooks, dependencies, metrics.counters.deliveries)
  const derivation = createCodeDerivation(createCodeKeys(storage.database, dependencies.sealer))
  const readCode = createReadMailedCode(storage.database, derivation)
  const mail = createMailService(
    dependencies.config.mail,
    { ...dependencies, readCode },
    metrics.counters.mails,
  )
  const changes = createChangeRecorder(dependencies.config, clock)
  const events = createEventService(eventSettingsOf(dependencies.config), {
    database: storage.database,
    clock,
    random: Math.random,
    outcomes: metrics.counters.events,
    onError: failureLog,
    onNotTaken: (problem, failures) =>
      logger.warn({ problem, failures }, 'events not taken by the service of events.url'),
  })
  let adminSettings = adminSettingsOf(dependencies.config)
  const consoleSessions = createConsoleSessions(() => adminSettings.operators, clock)
  const configuration = createConfigurationRecord(listing, clock)
  const running = createRunningExplain(dependencies.config, clock, configuration.running)
  const codes = createCodeIssueStore(storage.database, dependencies.mailQueue)
  const pruner = createPruner({
    store: {
      prune: async (now, limit) => Math.max(await sessions.prune(now, limit), await codes.prune(now, limit)),
    },
    clock,
    onError: error => failureLog('expired sessions and codes not pruned', error),
  })
  const stopTargetLog = startTargetLog({ targetStatus: serving.targetStatus, logger })
  let admin: { address: string; drain: Drain } | undefined
  let isStopping = false
  const stopDeliveries = async (grace: number) => {
    await Promise.all([webhooks, mail, events].map(each => each.stop(grace)))
  }
  const close = async (time: number) => {
    pruner.stop()
    stopTargetLog()
    await Promise.all([stopDeliveries(0), admin?.drain.run(time)])
  }
  try {
    admin = await startAdminListener(dependencies, serving, {
      adminSettings: () => adminSettings,
      consoleSessions,
      sessions,
      users: createUserStore(storage.database, changes.record),
      webhooks,
      mails: mail.mails,
      configuration,
      explain: running.explain,
      isStopping: () => isStopping,
    })
  } catch (error) {
    await close(0)
    throw error
  }
  return {
    adminAddress: admin?.address,
    applyConfig(config) {
      adminSettings = adminSettingsOf(config)
      consoleSessions.closeOrphans()
      running.configure(config)
      webhooks.configure(config.webhooks)
      mail.configure(config.mail)
      events.configure(eventSettingsOf(config))
      changes.configure(config)
    },
    reloaded: configuration.reloaded,
    beginStop(grace) {
      isStopping = true
      return stopDeliveries(grace)
    },
    close,
  }
}

function eventSettingsOf({ events, webhooks: { timeout, retention } }: Config): EventSettings {
  return { events, timeoutMs: timeout, retentionMs: retention }
}

interface AdminListenerServices {
  adminSettings(): AdminSettings
  consoleSessions: ConsoleSessions
  sessions: ReturnType<typeof createSessionStore>
  users: UserStore
  webhooks: AlertService
  mails: MailService['mails']
  configuration: ConfigurationRecord
  explain: ExplainDependencies['explain']
  isStopping(): boolean
}

async function startAdminListener(
  { config, storage, mailQueue, clock, logger, failureLog, metrics }: Dependencies,
  { changesVisible, targetStatus, workers }: Pick<DataPlane, 'changesVisible' | 'targetStatus' | 'workers'>,
  {
    adminSettings: current,
    consoleSessions,
    sessions,
    users,
    webhooks: { alerts, deliveries },
    mails,
    configuration,
    explain,
    isStopping,
  }: AdminListenerServices,
): Promise<{ address: string; drain: Drain } | undefined> {
  for (const warning of current().warnings) logger.warn({}, warning)
  if (config.admin === undefined) return undefined
  const gather = async (part: MetricsPart) => [
    await metrics.gather(part),
    ...((await workers?.metrics(part)) ?? []),
  ]
  const history = createOverviewHistory({ clock, gather: () => gather('own') })
  const health = createHealth({
    ...storage.checks,
    workers: workers?.health,
    warnings: () => current().warnings,
    lastReload: metrics.counters.lastReload,
    isStopping,
  })
  const app = createAdminListener({
    operators: () => current().operators,
    isAllowedAddress: request => current().isAllowedAddress(request),
    routes: () => current().routes,
    targetStatuses: targetStatus,
    users,
    userDirectory: createUserDirectory(storage.database),
    userDetails: createUserDetailsStore(storage.database),
    sessions,
    apiTokens: createApiTokenStore(storage.database),
    webhooks: createWebhookStore(storage.database),
    hashPassword: password => current().hashPassword(password),
    alerts,
    deliveries,
    mails,
    audit: createAuditStore(storage.database),
    changesVisible,
    renderMetrics: async () => (workers === undefined ? metrics.text() : mergedText(await gather('all'))),
    health,
    configuration,
    explain,
    exports: createAccountExportStore(storage.database),
    codeIssues: createCodeIssueStore(storage.database, mailQueue),
    resetTtlMs: () => current().resetTtlMs,
    wakeMails: mailQueue.wake,
    overview: { history, upstreamNames: () => current().upstreamNames, health, workers: workers?.health },
    documentation: async () =>
      (await import('../composition/api-description.ts')).createDocumentation(packageFacts().version),
    isConsoleOn: () => current().isConsoleOn,
    consoleSessions,
    consoleAssets: readConsoleAssets,
    seenByBrowser: request => current().seenByBrowser(request),
    requestIdFor: createRequestIdFor(randomBytes),
    clock,
    logger,
    failureLog,
  })
  const stopSampling = sampleEachStep(history, clock)
  app.addHook('onClose', async () => stopSampling())
  const drain = createDrain(app)
  // A copy, because Fastify modifies it.
  await app.listen({ ...config.admin.listen })
  return { address: addressOf(app), drain }
}
