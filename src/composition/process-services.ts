// Services that live as long as the process, across configuration reloads.
import { randomBytes } from 'node:crypto'
import { createPendingRevocations, type PendingRevocations } from '../accounts/pending-revocations.ts'
import { createSessionStore, type SessionStore } from '../accounts/session-store.ts'
import { createFailedLoginLimiter, type FailedLoginLimiter } from '../endpoints/failed-login-limiter.ts'
import { createRequestIds } from '../gate/parsing/request-ids.ts'
import { createForwarderNotice } from '../http/client-address.ts'
import { type ApiTokenStore, createApiTokenStore } from '../identity/api-tokens/api-token-store.ts'
import { createLastUsed, type LastUsed } from '../identity/api-tokens/last-used.ts'
import { createOpenStreams, type OpenStreams } from '../proxy/open-streams.ts'
import { createOriginLog, type LogOrigin } from '../proxy/origin-log.ts'
import { type ChangeFeed, createChangeFeed } from '../storage/change-feed.ts'
import { createNameLookups, type NameLookups } from '../upstream/targets/name-lookups.ts'
import { createUserStatusStore } from '../users/user-status-store.ts'
import { createUserStore, type UserStore } from '../users/user-store.ts'
import type { Dependencies } from './dependencies.ts'
import { type ChangeRecorder, createChangeRecorder } from './record-changes.ts'

export interface ProcessServices extends Omit<Dependencies, 'config'> {
  readonly users: UserStore
  readonly changes: ChangeRecorder
  readonly sessionStore: SessionStore
  readonly apiTokens: ApiTokenStore
  readonly feed: ChangeFeed
  readonly lastUsed: LastUsed
  readonly pendingRevocations: PendingRevocations
  readonly openStreams: OpenStreams
  readonly nameLookups: NameLookups
  readonly failedLogins: FailedLoginLimiter
  readonly logOrigin: LogOrigin
  newRequestId(): string
  onUntrustedForwarder(peer: string): void
  /** Closes everything it opened; the caller closes the storage. */
  close(): Promise<void>
}

/** @param dependencies.config the configuration at start */
export function openProcessServices({ config, ...dependencies }: Dependencies): ProcessServices {
  const { storage, metrics, clock, logger, failureLog } = dependencies
  const { database } = storage
  const changes = createChangeRecorder(config, clock)
  const sessionStore = createSessionStore(database)
  const apiTokens = createApiTokenStore(database)
  const feed = createChangeFeed({
    listen: storage.listen,
    database,
    now: () => performance.now(),
    onState: state =>
      state === 'lost'
        ? logger.warn({}, 'change feed lost; identity cache bypassed until it returns')
        : logger.info({}, 'change feed restored; identity cache in use again'),
  })
  const pendingRevocations: PendingRevocations = createPendingRevocations({
    store: sessionStore,
    changesVisible: feed.catchUp,
    onError: error =>
      failureLog('revocations of logged-out tokens are not stored yet', error, () => ({
        pending: pendingRevocations.count,
      })),
  })
  const openStreams = createOpenStreams({
    users: createUserStatusStore(database),
    sessions: sessionStore,
    feed,
    clock,
    now: () => performance.now(),
    onError: error => failureLog('open-stream re-authorization failed', error),
  })
  return {
    ...dependencies,
    nameLookups: createNameLookups(),
    users: createUserStore(database, changes.record),
    changes,
    sessionStore,
    apiTokens,
    feed,
    pendingRevocations,
    openStreams,
    lastUsed: createLastUsed({
      store: apiTokens,
      clock,
      onError: error => failureLog('last use of an API token not written', error),
    }),
    failedLogins: createFailedLoginLimiter(),
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
