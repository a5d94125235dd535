// The composition root: every object of a running gateway is made here and handed down.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { createAccessLog } from './access-log.ts'
import { createAccounts } from './accounts/accounts.ts'
import { createPasswords } from './accounts/password.ts'
import { createPendingLogouts } from './accounts/pending-logouts.ts'
import { createSessionStore } from './accounts/session-store.ts'
import { createSessions } from './accounts/sessions.ts'
import { createUserStore } from './accounts/user-store.ts'
import { openCertificates } from './certificates.ts'
import { createAuthEndpoints } from './endpoints/auth.ts'
import { createOwnPaths, type OwnEndpoints } from './endpoints/own-paths.ts'
import { createUpgradeEndpoints } from './endpoints/upgrade.ts'
import { createUserEndpoints } from './endpoints/user.ts'
import { createFrontDoor } from './front-door.ts'
import { createGate } from './gate/gate.ts'
import { openAsked } from './gate/open-asked.ts'
import { createOpenStreams } from './gate/open-streams.ts'
import { createRequestIds } from './gate/request-ids.ts'
import { createForwarderNotice } from './gate/untrusted-forwarder.ts'
import { createApiTokenStore } from './identity/api-token-store.ts'
import { createKeyStore } from './identity/key-store.ts'
import { watchKeys } from './identity/key-watch.ts'
import { createLastUsed } from './identity/last-used.ts'
import { openKeys } from './identity/signing-keys.ts'
import { createStandingStore } from './identity/standing-store.ts'
import { createTokens } from './identity/tokens.ts'
import { showCertificate } from './listening.ts'
import type { Opened } from './opened.ts'
import { createRequestEnd } from './request-end.ts'
import type { TargetStanding } from './upstream/standing.ts'
import { createUpstreams } from './upstream/upstreams.ts'
import { openWebhooks } from './webhooks/open.ts'

export interface Gateway {
  /** The listener that clients reach, not yet listening. */
  readonly app: FastifyInstance
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
  const { config, backing, sealer, metrics, tracing, clock, logger } = parts
  const { tallies } = metrics
  const { database, limiters } = backing
  const { tls } = config.server
  const certificates = tls && openCertificates(tls, { clock, logger })
  const users = createUserStore(database)
  const onKeyError = (error: Error) => logger.error({ err: error }, 'the stored signing keys cannot be read')
  const keys = await openKeys(config.auth.keys, {
    store: createKeyStore(backing.database),
    sealer,
    clock,
    onError: onKeyError,
  })
  const tokens = createTokens({
    keys,
    clock,
    issuer: config.auth.issuer,
    audience: config.auth.audience,
    accessTokenTtl: config.auth.access_token_ttl,
    refreshTokenTtl: config.auth.refresh_token_ttl,
  })

  const sessionStore = createSessionStore(database)
  const pendingLogouts = createPendingLogouts({
    store: sessionStore,
    onError: error => logger.warn({ err: error }, 'logouts are still to be stored'),
  })
  const sessions = createSessions({
    store: sessionStore,
    tokens,
    pendingLogouts,
    clock,
    reuse: config.auth.refresh_reuse,
  })
  const passwords = await createPasswords(config.auth.hashing)
  const accounts = createAccounts({ users, passwords, sessions })

  const apiTokens = createApiTokenStore(database)
  const lastUsed = createLastUsed({
    store: apiTokens,
    clock,
    onError: error => logger.warn({ err: error }, 'last use of a key not written'),
  })
  const upstreams = createUpstreams(config.upstreams, metrics.upstream)
  const { asked, feed } = openAsked({
    config,
    backing,
    clock,
    logger,
    tallies,
    tokens,
    keys,
    users,
    apiTokens,
    lastUsed,
  })
  const stopWatchingKeys = watchKeys({ keys, feed, onError: onKeyError })

  const own: OwnEndpoints = {
    auth: createAuthEndpoints({ accounts, sessions, limiters }),
    user: createUserEndpoints({
      apiTokens,
      webhooks: openWebhooks(parts),
      randomBytes,
      clock,
      inForce: () => parts.everywhere(feed.catchUp),
    }),
    upgrade: createUpgradeEndpoints(config.subscription.upgrade_url),
  }
  const openStreams = createOpenStreams({
    store: createStandingStore(database),
    clock,
    onError: error => logger.warn({ err: error }, 'who has an open stream could not be checked'),
  })
  const app = createFrontDoor({
    gate: createGate({
      config,
      findOwn: createOwnPaths(own).find,
      asked,
      upstreams,
      openStreams,
      decisions: tallies.guards,
      clock,
      onUntrustedForwarder: createForwarderNotice(tallies, logger),
      newRequestId: createRequestIds(randomBytes),
    }),
    own,
    jwks: keys.jwks,
    timeouts: config.server.timeouts,
    tls: certificates?.first,
    logger,
    tracing,
    endRequest: createRequestEnd({
      requests: metrics.requests,
      tallies,
      logRequest: createAccessLog(logger, config.server.log.requests),
    }),
  })
  certificates?.watch(context => showCertificate(app, context))
  const unwatch = metrics.watch({
    targets: upstreams.standing,
    openStreams: openStreams.count,
    pendingLogouts: () => pendingLogouts.count,
    isFeedTrusted: feed.isTrusted,
  })

  return {
    app,
    standing: upstreams.standing,
    inForce: feed.catchUp,
    endStreams: openStreams.endAll,
    async flush() {
      await Promise.all([lastUsed.flush(), pendingLogouts.flush()])
    },
    async close() {
      unwatch()
      certificates?.stop()
      openStreams.stop()
      stopWatchingKeys()
      pendingLogouts.close()
      await feed.close()
      await upstreams.close()
    },
  }
}
