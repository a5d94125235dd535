// What every process of a gateway stands on: the configuration, its stores, a clock, a log, and what is counted.
import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import type { Config } from '../config/schema/schema.ts'
import { openSealer, type Sealer } from '../identity/sealer.ts'
import { createMetrics, type Metrics } from '../observability/metrics/metrics.ts'
import type { Tracing } from '../observability/tracing/tracing.ts'
import { createFailureLog, type FailureLog } from '../storage/failure-log.ts'
import { openStorage, type Storage } from '../storage/open.ts'
import { packageFacts } from '../version.ts'

export interface Dependencies {
  /** What is started with. */
  readonly config: Config
  readonly storage: Storage
  /** Nothing where `auth.key_secret` is not set. */
  readonly sealer: Sealer | undefined
  readonly clock: Clock
  readonly logger: Logger
  /** Of this process: what the log says of stores that fail. */
  readonly failureLog: FailureLog
  /** For as long as the process runs. */
  readonly metrics: Metrics
  /** For as long as the process runs; nothing where there are no traces. */
  readonly tracing: Tracing | undefined
}

interface Options {
  config: Config
  clock: Clock
  logger: Logger
  tracing?: Tracing | undefined
  /** How the stores are opened; a test passes another that looks into them. */
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
  const storage = await open(config, { logger, failureLog, clock, spans: tracing?.stores })
  const metrics = createMetrics({ version: packageFacts().version, stores: storage.gauges })
  return { config, storage, sealer, clock, logger, failureLog, metrics, tracing }
}
