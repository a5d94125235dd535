// Caches which sessions live until the database reports that one ended (CONTRACT §12, `auth.logout_ends_access`).
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { Clock } from '../../clock.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { UserWithEpoch } from '../../users/user-store.ts'
import { createRecordCache } from './record-cache.ts'

/** The active record of a session, as it was read. */
export interface ActiveSession {
  /** The user's session epoch: once that is higher, the session has ended. */
  readonly epoch: number
  readonly expiresAt: Date
}

export interface SessionCache {
  /**
   * Whether a session of a user lives; synchronous if it is cached.
   * @param user whose epoch is as recent as the change feed has it
   * @throws StorageError, synchronously or in the promise
   */
  isLive(user: Pick<UserWithEpoch, 'id' | 'session_epoch'>, sessionId: string): MaybePromise<boolean>
  /** Unsubscribes from the change feed: the cache must not be used afterwards. */
  close(): void
}

interface Dependencies {
  /** @throws StorageError */
  read(userId: number, sessionId: string): Promise<ActiveSession | undefined>
  /** Whether a session has ended here and the store does not know it yet. */
  isEnding(sessionId: string): boolean
  feed: ChangeFeed
  clock: Clock
  /** The least recently used is evicted first. */
  maxSessions: number
  results: CacheResults
}

/** How many sessions that ended are cached. None of them comes back unnoticed: that is notified too. */
const maxEnded = 1_000

export function createSessionCache({
  read,
  isEnding,
  feed,
  clock,
  maxSessions,
  results,
}: Dependencies): SessionCache {
  // The key is what the trigger says of a session: `USER_ID SESSION_ID`.
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
        // A session of a later epoch is newer than what is cached of its user.
        if (session === undefined || session.epoch < epoch) return false
        if (clock.now() < session.expiresAt.getTime()) return true
        // Rotations are not notified: a later record may have taken the place of the one that was read.
        sessions.forget(key)
        return chain(sessions.get(key), successor => successor !== undefined && successor.epoch >= epoch)
      })
    },
    close,
  }
}

const changePrefix = 'session '
