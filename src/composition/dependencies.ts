// What every gateway process is built on: configuration, stores, clock, log, metrics and tracing.
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/sections/schema.ts'
import { openSealer, type Sealer } from '../identity/sealer.ts'
import { createMailQueue, type MailQueue } from '../mail/mail-queue.ts'
import { createMetrics, type Metrics } from '../observability/metrics/metrics.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import { createFailureLog, type FailureLog } from '../storage/failure-log.ts'
import { openStorage, type Storage } from '../storage/open.ts'
import { packageFacts } from '../version.ts'
import { openFolder } from './open-folder.ts'

export interface Dependencies {
  /** The configuration at start; reloads do not change it here. */
  readonly config: Config
  readonly storage: Storage
  /** Undefined if `auth.key_secret` is not set. */
  readonly sealer: Sealer | undefined
  /** Stores mails to be sent. */
  readonly mailQueue: MailQueue
  readonly clock: Clock
  readonly logger: Logger
  /** Logs store failures of this process, throttled per message. */
  readonly failureLog: FailureLog
  /** Lives as long as the process. */
  readonly metrics: Metrics
  /** Lives as long as the process; undefined if tracing is off. */
  readonly tracing: Tracing | undefined
}

interface Options {
  config: Config
  clock: Clock
  logger: Logger
  tracing?: Tracing | undefined
  /** Replaceable, so that a test can inspect the stores. */
  open?: typeof openStorage | undefined
}

/** @throws DataDirLocked, StorageError as `openStorage` */
export async function createDependencies({
  config,
  clock,
  logger,
  tracing,
  open = openStorage,
}: Options): Promise<Dependencies> {
  const failureLog = createFailureLog({ logger, clock })
  const sealer = await openSealer(config.auth)
  const storage = await open(config, { logger, failureLog, clock, spans: tracing?.stores }, openFolder)
  try {
    const metrics = createMetrics({ version: packageFacts().version, stores: storage.gauges })
    const mailQueue = createMailQueue(clock)
    return { config, storage, sealer, mailQueue, clock, logger, failureLog, metrics, tracing }
  } catch (error) {
    await storage.close()
    throw error
  }
}
