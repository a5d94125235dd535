// Opens the services that live as long as the process. A process that serves requests opens additional services.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { type CodeDerivation, createCodeDerivation } from '../accounts/codes/code-derivation.ts'
import { type CodeKeys, createCodeKeys, createCookieKeys } from '../accounts/codes/code-key-store.ts'
import { createRedeemCode, type RedeemCode } from '../accounts/codes/redeem-code.ts'
import { createPendingRevocations, type PendingRevocations } from '../accounts/pending-revocations.ts'
import type { Clock } from '../clock.ts'
import { createPlans, type Plans } from '../config/plans.ts'
import type { Config } from '../config/sections/schema.ts'
import { createFailedLoginLimiter, type FailedLoginLimiter } from '../endpoints/failed-login-limiter.ts'
import { createRequestIds } from '../gate/parsing/request-ids.ts'
import { createForwarderNotice } from '../http/client-address.ts'
import { createLastUsed, type LastUsed } from '../identity/api-keys/last-used.ts'
import { openSealer, type Sealer } from '../identity/sealer.ts'
import { createMailQueue, type MailQueue } from '../mail/mail-queue.ts'
import { createMetrics, type Metrics } from '../observability/metrics/metrics.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import { createOpenStreams, type OpenStreams } from '../proxy/open-streams.ts'
import { createOriginLog, type LogOrigin } from '../proxy/origin-log.ts'
import { type ChangeFeed, createChangeFeed } from '../storage/change-feed.ts'
import { createFailureLog, type FailureLog } from '../storage/failure-log.ts'
import { openStorage, type Storage } from '../storage/open.ts'
import { createNameLookups, type NameLookups } from '../upstream/targets/name-lookups.ts'
import { packageFacts } from '../version.ts'
import { openFolder } from './open-folder.ts'
import { createChangeRecorder } from './record-changes.ts'
import { createStores, type Stores } from './stores.ts'

/** The services that every process has, as a single process, as a primary with workers, or as a worker. */
export interface GatewayProcess {
  /** The configuration at the start of the process. A reload cannot change its listen addresses and stores. */
  readonly startConfig: Config
  readonly config: CurrentConfig
  /** The plans of the active configuration. */
  plans(): Plans
  readonly storage: Storage
  readonly stores: Stores
  /** Undefined if `auth.key_secret` is not set. */
  readonly sealer: Sealer | undefined
  readonly codeDerivation: CodeDerivation
  /** The keys that encrypt the cookies of sign-ins with other identity providers. */
  readonly cookieKeys: CodeKeys
  readonly mailQueue: MailQueue
  readonly clock: Clock
  readonly logger: Logger
  /** Logs store failures of this process. Repeated failures of one kind are logged at most once a minute. */
  readonly failureLog: FailureLog
  readonly metrics: Metrics
  /** Undefined if tracing is disabled. */
  readonly tracing: Tracing | undefined
}

interface Options {
  config: Config
  clock: Clock
  logger: Logger
  tracing?: Tracing | undefined
  /** A test can replace this function to inspect the stores. */
  open?: typeof openStorage | undefined
}

/** @throws the errors of `openStorage`: DataDirLocked, StorageError */
export async function openProcess({
  config: startConfig,
  clock,
  logger,
  tracing,
  open = openStorage,
}: Options): Promise<GatewayProcess> {
  const config = createCurrentConfig(startConfig, next => {
    logger.level = next.server.log.level
  })
  const failureLog = createFailureLog({ logger, clock })
  const sealer = await openSealer(startConfig.auth)
  const storage = await open(startConfig, { logger, failureLog, clock, spans: tracing?.stores }, openFolder)
  try {
    const { database } = storage
    const mailQueue = createMailQueue(clock)
    const recordChanges = createChangeRecorder(config.get, clock, mailQueue)
    const plans = config.derive(({ plans }) => createPlans(plans))
    return {
      startConfig,
      config,
      plans,
      storage,
      stores: createStores({ database, mailQueue, recordChanges, plans }),
      sealer,
      codeDerivation: createCodeDerivation(createCodeKeys(database, sealer)),
      cookieKeys: createCookieKeys(database, sealer),
      mailQueue,
      clock,
      logger,
      failureLog,
      metrics: createMetrics({ version: packageFacts().version, stores: storage.gauges }),
      tracing,
    }
  } catch (error) {
    await storage.close()
    throw error
  }
}

/** The additional services of a process that serves clients. */
export interface ServingProcess extends GatewayProcess {
  readonly feed: ChangeFeed
  readonly lastUsed: LastUsed
  readonly pendingRevocations: PendingRevocations
  readonly openStreams: OpenStreams
  readonly nameLookups: NameLookups
  readonly failedLogins: FailedLoginLimiter
  readonly redeemCode: RedeemCode
  readonly logOrigin: LogOrigin
  newRequestId(): string
  onUntrustedForwarder(peer: string): void
  /** Closes everything that `openServingProcess` opened. The caller closes the storage. */
  close(): Promise<void>
}

export function openServingProcess(gatewayProcess: GatewayProcess): ServingProcess {
  const { storage, stores, codeDerivation, metrics, clock, logger, failureLog } = gatewayProcess
  const feed = createChangeFeed({
    listen: storage.listen,
    database: storage.database,
    now: () => performance.now(),
    onState: state =>
      state === 'lost'
        ? logger.warn({}, 'change feed lost; identity cache bypassed')
        : logger.info({}, 'change feed restored; identity cache in use again'),
  })
  feed.subscribe(stores.quotaRecords.onChange, () => stores.quotaRecords.onChange())
  const pendingRevocations: PendingRevocations = createPendingRevocations({
    store: stores.sessions,
    changesVisible: feed.catchUp,
    onError: error =>
      failureLog('revocations of logged-out tokens are not stored yet', error, () => ({
        pending: pendingRevocations.count,
      })),
  })
  const openStreams = createOpenStreams({
    users: stores.userStatuses,
    apiKeys: stores.apiKeys,
    sessions: stores.sessions,
    plans: gatewayProcess.plans,
    feed,
    clock,
    now: () => performance.now(),
    onError: error => failureLog('open-stream re-authorization failed', error),
  })
  return {
    ...gatewayProcess,
    nameLookups: createNameLookups(),
    feed,
    pendingRevocations,
    openStreams,
    lastUsed: createLastUsed({
      store: stores.apiKeys,
      clock,
      onError: error => failureLog('last use of an API key not recorded', error),
    }),
    failedLogins: createFailedLoginLimiter(),
    redeemCode: createRedeemCode({ codes: stores.codeRedemptions, derivation: codeDerivation, clock }),
    logOrigin: createOriginLog({ logger, clock }),
    newRequestId: createRequestIds(randomBytes),
    onUntrustedForwarder: createForwarderNotice(metrics.counters, logger),
    async close() {
      openStreams.stop()
      pendingRevocations.close()
      await feed.close()
    },
  }
}

/** Contains the configuration that is active in this process. */
interface CurrentConfig {
  get(): Config
  /** Call this when a reload is committed. */
  activate(next: Config): void
  /**
   * Returns a function that returns what `make` creates from the active configuration. After a reload, the function
   * calls `make` again.
   */
  derive<T>(make: (config: Config) => T): () => T
}

/** @param onActivate called with each configuration that a reload activates */
function createCurrentConfig(atStart: Config, onActivate: (next: Config) => void): CurrentConfig {
  let current = atStart
  return {
    get: () => current,
    activate(next) {
      current = next
      onActivate(next)
    },
    derive(make) {
      let source = current
      let made = make(source)
      return () => {
        if (source === current) return made
        made = make(current)
        source = current
        return made
      }
    },
  }
}
