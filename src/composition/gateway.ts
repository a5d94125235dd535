// The composition root: what lasts, the configuration in force, and the listener are put together here.
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema/schema.ts'
import { setTimeouts, showCertificate } from '../http/http-server.ts'
import { createFrontDoor } from '../proxy/client-listener.ts'
import { createRequestEnd } from '../proxy/completion.ts'
import type { TargetStanding } from '../upstream/targets/target-status.ts'
import type { Opened } from './dependencies.ts'
import { openLasting } from './process-services.ts'
import { createShelf } from './resources.ts'
import { type InForce, openInForce } from './snapshot.ts'

export interface Gateway {
  /** The listener that clients reach, not yet listening. */
  readonly app: FastifyInstance
  /**
   * Makes all that another configuration needs, and has nobody served with it yet.
   * @throws as `createGateway`; nothing is left open then
   */
  prepare(config: Config): Promise<{ take(): void; drop(): void }>
  /** How the targets of all upstreams stand. */
  standing(): TargetStanding[]
  /** Resolves when what was changed in the database by now is in force here. */
  inForce(): Promise<void>
  /** Ends WebSockets and event streams, which would not end by themselves. */
  endStreams(): void
  /** Writes what is still in memory: uses of keys, and logouts that the store has not taken yet. */
  flush(): Promise<void>
  /** Closes what it opened; the backing is the caller's. */
  close(): Promise<void>
}

interface Parts extends Opened {
  /** Resolves when changes are in force for all clients, of whichever process. @param here the same, of this one */
  everywhere(here: () => Promise<void>): Promise<void>
}

/**
 * @throws KeyError where the signing keys cannot be read
 * @throws CertificateError where `server.tls` cannot be served with
 */
export async function createGateway(parts: Parts): Promise<Gateway> {
  const { metrics, tracing } = parts
  const lasting = openLasting(parts)
  const shelf = createShelf()
  const { feed, openStreams, lastUsed, pendingLogouts } = lasting
  const open = (config: Config) =>
    openInForce(config, {
      lasting,
      holding: shelf.hold(),
      inForce: () => parts.everywhere(feed.catchUp),
    })
  let current: InForce
  try {
    current = await open(parts.config)
  } catch (error) {
    await lasting.close()
    throw error
  }
  const app = createFrontDoor({
    current: () => current,
    timeouts: current.config.server.timeouts,
    tls: current.certificates?.first,
    tracing,
    newRequestId: lasting.newRequestId,
    onUntrustedForwarder: lasting.onUntrustedForwarder,
    endRequest: createRequestEnd(metrics),
  })
  const watchCertificates = () => current.certificates?.watch(context => showCertificate(app, context))
  watchCertificates()
  const unwatch = metrics.watch({
    targets: () => current.standing(),
    openStreams: openStreams.count,
    pendingLogouts: () => pendingLogouts.count,
    isFeedTrusted: feed.isTrusted,
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
          if (next.certificates !== undefined && next.certificates !== before.certificates) {
            showCertificate(app, next.certificates.first)
            watchCertificates()
          }
          before.retire()
        },
        drop: next.retire,
      }
    },
    standing: () => current.standing(),
    inForce: feed.catchUp,
    endStreams: openStreams.endAll,
    async flush() {
      await Promise.all([lastUsed.flush(), pendingLogouts.flush()])
    },
    async close() {
      unwatch()
      await lasting.close()
      await shelf.close()
    },
  }
}
