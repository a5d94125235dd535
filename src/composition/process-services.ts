// What lasts for as long as the process serves, whatever configuration is in force.
import { randomBytes } from 'node:crypto'
import { createPendingLogouts, type PendingLogouts } from '../accounts/pending-revocations.ts'
import { createSessionStore, type SessionStore } from '../accounts/session-store.ts'
import { createFailureLimits, type FailureLimits } from '../endpoints/failed-login-limiter.ts'
import { createRequestIds } from '../gate/parsing/request-ids.ts'
import { createForwarderNotice } from '../gate/parsing/untrusted-forwarder.ts'
import { type ApiTokenStore, createApiTokenStore } from '../identity/api-tokens/api-token-store.ts'
import { createLastUsed, type LastUsed } from '../identity/api-tokens/last-used.ts'
import { createOpenStreams, type OpenStreams } from '../proxy/open-streams.ts'
import { type ChangeFeed, createChangeFeed } from '../storage/change-feed.ts'
import { createStandingStore } from '../users/user-status-store.ts'
import { createUserStore, type UserStore } from '../users/user-store.ts'
import type { Opened } from './dependencies.ts'

export interface Lasting extends Omit<Opened, 'config'> {
  readonly users: UserStore
  readonly sessionStore: SessionStore
  readonly apiTokens: ApiTokenStore
  readonly feed: ChangeFeed
  readonly lastUsed: LastUsed
  readonly pendingLogouts: PendingLogouts
  readonly openStreams: OpenStreams
  readonly failures: FailureLimits
  newRequestId(): string
  onUntrustedForwarder(peer: string): void
  /** Closes what it opened; the backing is the caller's. */
  close(): Promise<void>
}

export function openLasting(opened: Omit<Opened, 'config'>): Lasting {
  const { backing, metrics, clock, logger, failureLog } = opened
  const { database } = backing
  const sessionStore = createSessionStore(database)
  const apiTokens = createApiTokenStore(database)
  const feed = createChangeFeed({
    listen: backing.listen,
    database,
    now: () => performance.now(),
    onState: state =>
      state === 'lost'
        ? logger.warn({}, 'changes are not heard: users and keys are read for every request')
        : logger.info({}, 'changes are heard again'),
  })
  const pendingLogouts: PendingLogouts = createPendingLogouts({
    store: sessionStore,
    onError: error =>
      failureLog('logouts are still to be stored', error, () => ({ pending: pendingLogouts.count })),
  })
  const openStreams = createOpenStreams({
    store: createStandingStore(database),
    clock,
    onError: error => failureLog('who has an open stream could not be checked', error),
  })
  return {
    ...opened,
    users: createUserStore(database),
    sessionStore,
    apiTokens,
    feed,
    pendingLogouts,
    openStreams,
    lastUsed: createLastUsed({
      store: apiTokens,
      clock,
      onError: error => failureLog('last use of a key not written', error),
    }),
    failures: createFailureLimits(),
    newRequestId: createRequestIds(randomBytes),
    onUntrustedForwarder: createForwarderNotice(metrics.tallies, logger),
    async close() {
      openStreams.stop()
      pendingLogouts.close()
      await feed.close()
    },
  }
}
