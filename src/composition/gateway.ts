// The composition root: what lasts, the configuration in force, and the listener are put together here.
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema/schema.ts'
import { setCertificate, setTimeouts } from '../http/http-server.ts'
import { createClientListener } from '../proxy/client-listener.ts'
import { createCompletion } from '../proxy/completion.ts'
import type { TargetStatus } from '../upstream/targets/target-status.ts'
import type { Dependencies } from './dependencies.ts'
import { openProcessServices } from './process-services.ts'
import { createResourcePool } from './resources.ts'
import { createSnapshot, type Snapshot } from './snapshot.ts'

export interface Gateway {
  /** The listener that clients reach, not yet listening. */
  readonly app: FastifyInstance
  /**
   * Makes all that another configuration needs, and has nobody served with it yet.
   * @throws as `createGateway`; nothing is left open then
   */
  prepare(config: Config): Promise<{ take(): void; drop(): void }>
  /** How the targets of all upstreams stand. */
  targetStatus(): TargetStatus[]
  /** Resolves when what was changed in the database by now is in force here. */
  changesVisible(): Promise<void>
  /** Ends WebSockets and event streams, which would not end by themselves. */
  endStreams(): void
  /** Writes what is still in memory: uses of keys, and logouts that the store has not taken yet. */
  flush(): Promise<void>
  /** Closes what it opened; the storage is the caller's. */
  close(): Promise<void>
}

interface Options extends Dependencies {
  /** Resolves when changes are in force for all clients, of whichever process. @param here the same, of this one */
  changesVisibleEverywhere(here: () => Promise<void>): Promise<void>
}

/**
 * @throws KeyError where the signing keys cannot be read
 * @throws CertificateError where `server.tls` cannot be served with
 */
export async function createGateway(parts: Options): Promise<Gateway> {
  const { metrics, tracing } = parts
  const services = openProcessServices(parts)
  const resourcePool = createResourcePool()
  const { feed, openStreams, lastUsed, pendingLogouts } = services
  const open = (config: Config) =>
    createSnapshot(config, {
      services,
      resources: resourcePool.openScope(),
      changesVisible: () => parts.changesVisibleEverywhere(feed.catchUp),
    })
  let current: Snapshot
  try {
    current = await open(parts.config)
  } catch (error) {
    await services.close()
    throw error
  }
  const app = createClientListener({
    current: () => current,
    timeouts: current.config.server.timeouts,
    tls: current.tlsCertificate?.initial,
    tracing,
    newRequestId: services.newRequestId,
    onUntrustedForwarder: services.onUntrustedForwarder,
    endRequest: createCompletion(metrics),
  })
  const watchCertificates = () => current.tlsCertificate?.watch(context => setCertificate(app, context))
  watchCertificates()
  const unwatch = metrics.register({
    targets: () => current.targetStatus(),
    openStreams: openStreams.count,
    pendingRevocations: () => pendingLogouts.count,
    isChangeFeedFresh: feed.isFresh,
  })

  return {
    app,
    async prepare(config) {
      const next = await open(config)
      return {
        take() {
          const before = current
          current = next
          setTimeouts(app, config.server.timeouts)
          if (next.tlsCertificate !== undefined && next.tlsCertificate !== before.tlsCertificate) {
            setCertificate(app, next.tlsCertificate.initial)
            watchCertificates()
          }
          before.retire()
        },
        drop: next.retire,
      }
    },
    targetStatus: () => current.targetStatus(),
    changesVisible: feed.catchUp,
    endStreams: openStreams.endAll,
    async flush() {
      await Promise.all([lastUsed.flush(), pendingLogouts.flush()])
    },
    async close() {
      unwatch()
      await services.close()
      await resourcePool.close()
    },
  }
}
