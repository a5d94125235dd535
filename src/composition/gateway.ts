// The composition root. It connects the services of the process, the current snapshot and the client listener.
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/sections/schema.ts'
import { setCertificate, setTimeouts } from '../http/http-server.ts'
import { keepShapeOfTicks } from '../http/node-internals.ts'
import { createClientListener } from '../proxy/client-listener.ts'
import { createCompletion } from '../proxy/completion.ts'
import type { TargetStatus } from '../upstream/targets/target-status.ts'
import { type GatewayProcess, openServingProcess } from './process.ts'
import { createSnapshot, type Snapshot } from './snapshot.ts'
import { createResourcePool } from './snapshot-resources.ts'

/** A configuration that is ready to be activated. Call either `commit` or `rollback`, and only once. */
export interface PreparedChange {
  /**
   * Activates the configuration. Resolves when every process uses the configuration for new requests, or when a time
   * limit has passed.
   */
  commit(): Promise<Activation>
  rollback(): Promise<void>
}

export interface Activation {
  /** The pids of the workers that did not activate the configuration in time. These workers are replaced. */
  readonly late: readonly number[]
  /** Resolves when the configuration is active in every process. */
  readonly everywhere: Promise<unknown>
}

export interface Gateway {
  /** The client listener. It does not accept connections until the caller starts it. */
  readonly app: FastifyInstance
  /**
   * Opens everything that a configuration needs. Requests use the configuration only after `commit`.
   * @throws the errors of `createGateway`; after an error, nothing stays open
   */
  prepare(config: Config): Promise<PreparedChange>
  targetStatus(): TargetStatus[]
  /** Resolves when every database change that is already committed is visible in this process. */
  changesVisible(): Promise<void>
  /** Ends WebSockets and event streams, because they do not end by themselves. */
  endStreams(): void
  /** Stores the data that is still only in memory: the last uses of API keys, and revocations. */
  flush(): Promise<void>
  /** Closes everything that the gateway opened. The caller closes the storage. */
  close(): Promise<void>
}

/** Resolves when database changes are visible in every process. @param here does the same for this process only */
export type ChangesVisibleEverywhere = (here: () => Promise<void>) => Promise<void>

/** @throws KeyError if the signing keys cannot be read; CertificateError if the files of `server.tls` are unusable */
export async function createGateway(
  gatewayProcess: GatewayProcess,
  changesVisibleEverywhere: ChangesVisibleEverywhere,
): Promise<Gateway> {
  keepShapeOfTicks()
  const serving = openServingProcess(gatewayProcess)
  const resourcePool = createResourcePool()
  const { feed, openStreams, lastUsed, pendingRevocations, metrics } = serving
  const open = (config: Config) =>
    createSnapshot(config, {
      serving,
      resources: resourcePool.openScope(),
      changesVisible: () => changesVisibleEverywhere(feed.catchUp),
    })
  let current: Snapshot
  try {
    // The warm-up runs first. On a busy machine, opening a connection may take too long, and only the warm-up tries
    // again.
    await serving.storage.warmUp()
    current = await open(serving.startConfig)
  } catch (error) {
    await serving.close()
    throw error
  }
  const app = createClientListener({
    current: () => current,
    timeouts: serving.startConfig.server.timeouts,
    tls: current.tlsCertificate?.initial,
    tracing: serving.tracing,
    newRequestId: serving.newRequestId,
    onUntrustedForwarder: serving.onUntrustedForwarder,
    completeAtClose: createCompletion(metrics),
  })
  const watchCertificates = () => current.tlsCertificate?.watch(context => setCertificate(app, context))
  watchCertificates()
  const unwatch = metrics.register({
    targets: () => current.targetStatus(),
    openStreams: openStreams.count,
    pendingRevocations: () => pendingRevocations.count,
    isChangeFeedFresh: feed.isFresh,
  })

  return {
    app,
    async prepare(config) {
      const next = await open(config)
      return {
        async commit() {
          const before = current
          current = next
          next.activate()
          serving.config.activate(config)
          setTimeouts(app, config.server.timeouts)
          if (next.tlsCertificate !== undefined && next.tlsCertificate !== before.tlsCertificate) {
            setCertificate(app, next.tlsCertificate.initial)
            watchCertificates()
          }
          before.retire()
          return { late: [], everywhere: Promise.resolve() }
        },
        rollback: async () => next.retire(),
      }
    },
    targetStatus: () => current.targetStatus(),
    changesVisible: feed.catchUp,
    endStreams: openStreams.endAll,
    async flush() {
      await Promise.all([lastUsed.flush(), pendingRevocations.flush()])
    },
    async close() {
      unwatch()
      await serving.close()
      await resourcePool.close()
    },
  }
}
