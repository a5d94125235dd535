// Starts the admin listener, once per gateway, with its services and settings.
import { randomBytes } from 'node:crypto'
import { createPasswords, type Passwords } from '../accounts/password.ts'
import { createAddressFilter, type IsAllowedAddress } from '../admin/allowed-addresses.ts'
import { createConfigurationRecord, type ReloadOutcome } from '../admin/configuration-record.ts'
import { isConsoleBuilt, readConsoleAssets } from '../admin/console/assets.ts'
import { createBrowserView, type SeenByBrowser } from '../admin/console/browser-view.ts'
import { createConsoleSessions } from '../admin/console/console-sessions.ts'
import { createHealth } from '../admin/health.ts'
import { createAdminListener } from '../admin/listener.ts'
import { createOperators, type Operators } from '../admin/operators.ts'
import { createOverviewHistory, sampleEachStep } from '../admin/overview.ts'
import type { GatewayProcess } from '../composition/process.ts'
import type { Listing } from '../config/listing.ts'
import type { Config } from '../config/sections/schema.ts'
import { createRequestIdFor } from '../gate/parsing/request-ids.ts'
import { type MetricsPart, mergedText } from '../observability/metrics/exposition.ts'
import { packageFacts } from '../version.ts'
import type { BackgroundWork } from './background-work.ts'
import { createDrain } from './drain.ts'
import { createRunningExplain } from './running-explain.ts'
import { addressOf, type DataPlane } from './serve.ts'

export interface AdminListener {
  /** Undefined if the configuration has no `admin` section. */
  readonly address: string | undefined
  /** Stores the outcome of a reload. Ends the sessions of operators that the new configuration no longer contains. */
  reloaded(outcome: ReloadOutcome): void
  /** From now on, `/readyz` reports that the gateway is not ready. */
  beginStop(): void
  /** @param time how long running requests of operators may continue, in milliseconds */
  close(time: number): Promise<void>
}

interface Options {
  dataPlane: Pick<DataPlane, 'changesVisible' | 'targetStatus' | 'workers'>
  background: Pick<BackgroundWork, 'alerts' | 'deliveries' | 'mails'>
  /** The configuration at the start, with masked secrets, so that operators may see it. */
  listing: Listing | undefined
}

/** @throws the error if the admin listener cannot listen */
export async function startAdminListener(
  {
    startConfig,
    config,
    plans,
    storage,
    stores,
    mailQueue,
    clock,
    logger,
    failureLog,
    metrics,
  }: GatewayProcess,
  { dataPlane, background: { alerts, deliveries, mails }, listing }: Options,
): Promise<AdminListener> {
  const { changesVisible, targetStatus, workers } = dataPlane
  for (const warning of warningsOf(startConfig)) logger.warn({}, warning)
  if (startConfig.admin === undefined)
    return { address: undefined, reloaded() {}, beginStop() {}, close: async () => {} }
  const settings = config.derive(adminSettingsOf)
  const consoleSessions = createConsoleSessions(() => settings().operators, clock)
  const configuration = createConfigurationRecord({ config: startConfig, listing }, clock)
  let isStopping = false
  const gather = async (part: MetricsPart) => [
    await metrics.gather(part),
    ...((await workers?.metrics(part)) ?? []),
  ]
  const history = createOverviewHistory({ clock, gather: () => gather('own') })
  const health = createHealth({
    ...storage.checks,
    workers: workers?.health,
    warnings: () => settings().warnings,
    lastReload: metrics.counters.lastReload,
    isStopping: () => isStopping,
  })
  const app = createAdminListener({
    ...stores,
    alerts,
    deliveries,
    mails,
    operators: () => settings().operators,
    isAllowedAddress: request => settings().isAllowedAddress(request),
    plans,
    providers: () => config.get().auth.providers,
    routes: () => config.get().routes,
    targetStatuses: targetStatus,
    hashPassword: password => settings().hashPassword(password),
    changesVisible,
    renderMetrics: async () => (workers === undefined ? metrics.text() : mergedText(await gather('all'))),
    health,
    configuration,
    explain: createRunningExplain(configuration.active, clock),
    resetTtlMs: () => config.get().mail?.code_ttl.reset,
    wakeMails: mailQueue.wake,
    history,
    upstreamNames: () => Object.keys(config.get().upstreams),
    workers: workers?.health,
    documentation: async () =>
      (await import('../composition/api-description.ts')).createDocumentation(packageFacts().version),
    isConsoleOn: () => settings().isConsoleOn,
    consoleSessions,
    consoleAssets: readConsoleAssets,
    seenByBrowser: request => settings().seenByBrowser(request),
    requestIdFor: createRequestIdFor(randomBytes),
    language: () => config.get().server.language,
    clock,
    logger,
    failureLog,
  })
  const stopSampling = sampleEachStep(history, clock)
  app.addHook('onClose', async () => stopSampling())
  const drain = createDrain(app)
  try {
    // Copies the address, because Fastify modifies it.
    await app.listen({ ...startConfig.admin.listen })
  } catch (error) {
    await drain.run(0)
    throw error
  }
  return {
    address: addressOf(app),
    reloaded(outcome) {
      configuration.reloaded(outcome)
      consoleSessions.closeOrphans()
    },
    beginStop() {
      isStopping = true
    },
    close: drain.run,
  }
}

interface AdminSettings {
  operators: Operators
  isAllowedAddress: IsAllowedAddress
  seenByBrowser: SeenByBrowser
  isConsoleOn: boolean
  /**
   * Hashes passwords for operators with their own limit (`auth.hashing`). So an operator does not wait for logins of
   * users.
   */
  hashPassword: Passwords['hash']
  warnings: string[]
}

function adminSettingsOf(config: Config): AdminSettings {
  const { token = '', tokens = {}, allow_from, console = false } = config.admin ?? {}
  const operators = createOperators({ token: { token, may: 'all' }, ...tokens })
  return {
    operators,
    isAllowedAddress: createAddressFilter(allow_from, config.server.trusted_proxies),
    seenByBrowser: createBrowserView(config.server.trusted_proxies),
    isConsoleOn: console && operators.hasAny && isConsoleBuilt,
    hashPassword: createPasswords(config.auth.hashing).hash,
    warnings: warningsOf(config),
  }
}

/** Returns warnings about settings that work but are unsuitable for production. */
function warningsOf({ auth, mail }: Config): string[] {
  if (auth.key_secret !== '') return []
  const bare = [
    ...(auth.keys.length > 0 ? [] : ['signing keys']),
    'webhook secrets',
    ...(mail === undefined ? [] : ['the secret for mail codes']),
  ]
  const all = [bare.slice(0, -1).join(', '), ...bare.slice(-1)].filter(part => part !== '').join(' and ')
  return [`auth.key_secret is not set, so the database stores ${all} unencrypted`]
}
