// The composition root: every object of a running gateway is made here and handed down.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createAccessLog } from './access-log.ts'
import { createAccounts } from './accounts/accounts.ts'
import { createPasswords } from './accounts/password.ts'
import { createPendingLogouts } from './accounts/pending-logouts.ts'
import { createSessionStore, type SessionStore } from './accounts/session-store.ts'
import { createSessions } from './accounts/sessions.ts'
import { createUserStore, type UserStore } from './accounts/user-store.ts'
import { createChangeFeed } from './backing/change-feed.ts'
import type { Backing } from './backing/open.ts'
import { createPruner } from './backing/pruner.ts'
import { openCertificates } from './certificates.ts'
import type { Clock } from './clock.ts'
import type { Config } from './config/schema.ts'
import { sharedTargets } from './config/shared-targets.ts'
import { createAuthEndpoints } from './endpoints/auth.ts'
import { pathsOf } from './endpoints/guarded-endpoint.ts'
import { authPrefix, createOwnPaths, jwksPath } from './endpoints/own-paths.ts'
import { createUpgradeEndpoints } from './endpoints/upgrade.ts'
import { createUserEndpoints } from './endpoints/user.ts'
import { createFrontDoor } from './front-door.ts'
import { createAllowInPath } from './gate/allow-in-path.ts'
import { createArrivals } from './gate/arrival.ts'
import { createAuthenticate } from './gate/authenticate.ts'
import { createTrustedProxies } from './gate/client-address.ts'
import { createCorsPolicies } from './gate/cors.ts'
import { createCountDailyUse } from './gate/count-daily-use.ts'
import { createGuards, createOwnGuards } from './gate/guards.ts'
import { createLimitRate } from './gate/limit-rate.ts'
import { createOpenStreams } from './gate/open-streams.ts'
import { createPass } from './gate/pass.ts'
import { createRequestIds } from './gate/request-ids.ts'
import { compileRoute } from './gate/route.ts'
import { createRouteTable } from './gate/route-table.ts'
import { createApiTokenStore } from './identity/api-token-store.ts'
import { createAssertions } from './identity/assertions.ts'
import { createKeyStore } from './identity/key-store.ts'
import { createKnownTokens } from './identity/known-tokens.ts'
import { createKnownUsers } from './identity/known-users.ts'
import { createLastUsed } from './identity/last-used.ts'
import { createSealer } from './identity/sealed.ts'
import { openKeys } from './identity/signing-keys.ts'
import { createStandingStore } from './identity/standing-store.ts'
import { createTokens } from './identity/tokens.ts'
import { showCertificate } from './listening.ts'
import { createUpstreams } from './upstream/upstreams.ts'
import { createDailyCounter } from './usage/daily-counter.ts'
import { createFastCount } from './usage/fast-count.ts'
import { createSpentUsers } from './usage/spent-users.ts'
import { createUsageStore } from './usage/usage-store.ts'
import type { Alerts } from './webhooks/alerts.ts'
import type { DeliveryStore } from './webhooks/delivery-store.ts'
import { openWebhooks } from './webhooks/open.ts'

export interface Gateway {
  /** The listener that clients reach, not yet listening. */
  readonly app: FastifyInstance
  readonly users: UserStore
  readonly sessions: SessionStore
  /** Writes what is still in memory: uses of keys, and logouts that the store has not taken yet. */
  flush(): Promise<void>
  readonly alerts: Alerts
  readonly deliveries: Pick<DeliveryStore, 'list'>
  /** Resolves when what was changed in the database by now is in force here. */
  inForce(): Promise<void>
  /**
   * The beginning of the end: WebSockets and event streams, which would not end by themselves, are ended, and what is
   * being delivered may finish.
   * @param grace milliseconds for deliveries
   */
  endStreams(grace: number): Promise<void>
  /** Closes what it opened; the backing is the caller's. */
  close(): Promise<void>
}

interface Parts {
  config: Config
  backing: Backing
  clock: Clock
  logger: Logger
}

/**
 * @throws KeyError where the signing keys cannot be read
 * @throws CertificateError where `server.tls` cannot be served with
 */
export async function createGateway({ config, backing, clock, logger }: Parts): Promise<Gateway> {
  const { database, limiters } = backing
  const { tls } = config.server
  const certificates = tls && openCertificates(tls, { clock, logger })
  const users = createUserStore(database)
  const { key_secret: secret } = config.auth
  const sealer = secret === '' ? undefined : await createSealer(secret)
  const keys = await openKeys(config.auth.keys, {
    store: createKeyStore(backing.database),
    sealer,
    clock,
    onError: error => logger.error({ err: error }, 'the stored signing keys cannot be read'),
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
  const telling = openWebhooks({ config, backing, clock, logger }, sealer)
  const upstreams = createUpstreams(config.upstreams)
  const routes = config.routes.map(compileRoute)
  const feed = createChangeFeed({
    listen: backing.listen,
    database,
    now: () => performance.now(),
    onState: state =>
      state === 'lost'
        ? logger.warn({}, 'changes are not heard: users and keys are read for every request')
        : logger.info({}, 'changes are heard again'),
  })
  const { users: mostUsers, tokens: mostTokens } = config.auth.remember
  const knownUsers = createKnownUsers({ users, apiTokens, feed, most: mostUsers })
  const authenticate = createAuthenticate({
    tokens: createKnownTokens({ tokens, keys, clock, most: mostTokens }),
    users: knownUsers,
    lastUsed,
    badKeys: limiters.bad_keys,
    onKeyFault: error => logger.warn({ err: error }, 'a key could not be checked'),
  })
  const counter = createDailyCounter({
    store: createUsageStore(database),
    fast: backing.keyValue && createFastCount(backing.keyValue),
    clock,
    limit: config.limits.free_daily,
    onFallback: error => logger.debug({ err: error }, 'daily use counted without Redis'),
  })
  feed.subscribe(counter.onChange, counter.onChange)
  const guards = createGuards({
    upstreams,
    authenticate,
    limitRate: createLimitRate(routes, backing.createLimiter),
    countDailyUse: createCountDailyUse({
      counter,
      spent: createSpentUsers({ feed, most: mostUsers }),
      limit: config.limits.free_daily,
      clock,
    }),
  })

  const pruner = createPruner({
    store: sessionStore,
    clock,
    onError: error => logger.warn({ err: error }, 'expired sessions not pruned'),
  })
  const endpoints = createAuthEndpoints({ accounts, sessions, limiters })
  const guardedEndpoints = createUserEndpoints({
    apiTokens,
    webhooks: telling.webhooks,
    randomBytes,
    clock,
    inForce: feed.catchUp,
  })
  const upgrade = createUpgradeEndpoints(config.subscription.upgrade_url)
  const own = createOwnPaths([
    ...Object.keys(endpoints).map(name => ({ path: `${authPrefix}/${name}`, methods: ['POST'] })),
    ...pathsOf(guardedEndpoints),
    ...pathsOf(upgrade).map(path => ({ ...path, isReplaceable: true })),
    { path: jwksPath, methods: ['GET', 'HEAD'] },
  ])
  const table = createRouteTable(routes)
  const arrivals = createArrivals({
    findOwn: own.find,
    routes: table,
    allowInPath: createAllowInPath({
      isOwn: segments => own.find(segments) !== undefined,
      routes: table,
      isSameService: sharedTargets(
        new Map(Object.entries(config.upstreams).map(([name, { targets }]) => [name, targets])),
      ),
    }),
    cors: createCorsPolicies(config.server.cors, routes),
    proxies: createTrustedProxies(config.server.trusted_proxies),
    onUntrustedForwarder: warnOnce(logger),
    newRequestId: createRequestIds(randomBytes),
  })
  const openStreams = createOpenStreams({
    store: createStandingStore(database),
    clock,
    onError: error => logger.warn({ err: error }, 'who has an open stream could not be checked'),
  })
  const app = createFrontDoor({
    arrivals,
    endpoints,
    guardedEndpoints: [...guardedEndpoints, ...upgrade],
    jwks: keys.jwks,
    ownGuards: createOwnGuards(authenticate),
    guards,
    pass: createPass(
      upstreams,
      config.server.timeouts.body_idle,
      createAssertions({ tokens, keys, clock }),
      openStreams,
    ),
    timeouts: config.server.timeouts,
    tls: certificates?.first,
    logger,
    logRequest: createAccessLog(logger, config.server.log.requests),
  })
  certificates?.watch(context => showCertificate(app, context))

  return {
    app,
    users,
    sessions: sessionStore,
    alerts: telling.alerts,
    deliveries: telling.deliveries,
    inForce: feed.catchUp,
    async flush() {
      await Promise.all([lastUsed.flush(), pendingLogouts.flush()])
    },
    async endStreams(grace) {
      openStreams.endAll()
      await telling.stop(grace)
    },
    async close() {
      certificates?.stop()
      openStreams.stop()
      pruner.stop()
      await telling.stop(0)
      pendingLogouts.close()
      await feed.close()
      await upstreams.close()
    },
  }
}

/** A balancer that is not in `trusted_proxies` would be told at every request. */
function warnOnce(logger: Logger): (peer: string) => void {
  let warned = false
  return peer => {
    if (warned) return
    warned = true
    logger.warn(
      { peer },
      'X-Forwarded-For from a private address that is not in server.trusted_proxies: its clients share one rate limit',
    )
  }
}
