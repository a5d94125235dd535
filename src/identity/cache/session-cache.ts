// Caches active sessions until the database reports that they ended, for `auth.logout_ends_access`.
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { UserWithEpoch } from '../../users/user-store.ts'
import { createRecordCache } from './record-cache.ts'

export interface ActiveSession {
  /** The user's session epoch when the session was opened. If the user's epoch is higher, the session has ended. */
  readonly epoch: number
  readonly expiresAt: Date
}

export interface SessionCache {
  /**
   * Returns whether a session of a user is active. Synchronous if the session is cached.
   * @param user the user as `UserCache.find` returns it, so that `session_epoch` is up to date
   * @throws StorageError, synchronously or in the promise
   */
  isLive(user: Pick<UserWithEpoch, 'id' | 'session_epoch'>, sessionId: string): MaybePromise<boolean>
  close(): void
}

interface Dependencies {
  read(userId: number, sessionId: string): Promise<ActiveSession | undefined>
  /** Returns true if this process has ended the session but has not yet stored the change. */
  isEnding(sessionId: string): boolean
  feed: ChangeFeed
  clock: Clock
  maxSessions: number
  results: CacheResults
}

/**
 * The maximum number of cached sessions that have ended. Ended sessions can be cached, because the database also
 * reports a session that becomes active again.
 */
const maxEnded = 1_000

export function createSessionCache({
  read,
  isEnding,
  feed,
  clock,
  maxSessions,
  results,
}: Dependencies): SessionCache {
  // The key is the text that the database trigger sends for a session: `USER_ID SESSION_ID`.
  const sessions = createRecordCache<string, ActiveSession>({
    feed,
    maxRecords: maxSessions,
    maxAbsent: maxEnded,
    results,
    read(key) {
      const [userId, sessionId = ''] = key.split(' ')
      return read(Number(userId), sessionId)
    },
  })
  const close = feed.subscribe(change => {
    if (change.startsWith(changePrefix)) sessions.forget(change.slice(changePrefix.length))
  }, sessions.forgetAll)

  return {
    isLive({ id, session_epoch: epoch }, sessionId) {
      if (isEnding(sessionId)) return false
      const key = `${id} ${sessionId}`
      return chain(sessions.get(key), session => {
        // If a session's epoch is lower than its user's epoch, the session has ended. If the session's epoch is higher,
        // the session is newer than the cached user, and has not ended.
        if (session === undefined || session.epoch < epoch) return false
        if (clock.now() < session.expiresAt.getTime()) return true
        // A rotation of the refresh token extends the session, but the database does not report it. So the store may
        // have a later record than the cache.
        sessions.forget(key)
        return chain(sessions.get(key), successor => successor !== undefined && successor.epoch >= epoch)
      })
    },
    close,
  }
}

const changePrefix = 'session '
