// Caches users and API keys until the database reports that they changed.
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { User } from '../../users/user.ts'
import type { UserStore, UserWithEpoch } from '../../users/user-store.ts'
import type { ApiKey, ApiKeyStore } from '../api-keys/api-key-store.ts'
import { createRecordCache } from './record-cache.ts'

export interface KeyOwner {
  readonly user: User
  readonly apiKey: ApiKey
}

/** `find` and `findOwner` return cached records synchronously. @throws StorageError, synchronously or in the promise */
export interface UserCache {
  /** Returns the active user with this id. */
  find(userId: number): MaybePromise<UserWithEpoch | undefined>
  /** Returns the unrevoked API key with this hash and its active user. The key may have expired. */
  findOwner(tokenHash: string): MaybePromise<KeyOwner | undefined>
  /** Returns an API key as it was last cached, by its hash. It may be outdated while the store fails. */
  lastKnownKey(tokenHash: string): ApiKey | undefined
  close(): void
}

interface Dependencies {
  users: Pick<UserStore, 'findWithEpoch'>
  apiKeys: Pick<ApiKeyStore, 'findActive'>
  feed: ChangeFeed
  /**
   * The maximum number of cached users. The same maximum applies to cached API keys. When the cache is full, it removes
   * the least recently used entry.
   */
  maxUsers: number
  results: CacheResults
}

const maxUnknownKeys = 1_000

export function createUserCache({ users, apiKeys, feed, maxUsers, results }: Dependencies): UserCache {
  // Inactive users are cached too, because the database reports their reactivation. Unknown ids are not cached, because
  // the database does not report when a user is inserted. Also, a restored database may reuse an id.
  const byId = createRecordCache<number, UserWithEpoch>({
    feed,
    maxRecords: maxUsers,
    maxAbsent: 0,
    results,
    read: users.findWithEpoch,
  })
  const find = (userId: number) => chain(byId.get(userId), user => (user?.is_active === 1 ? user : undefined))
  const byHash = createRecordCache<string, ApiKey>({
    feed,
    maxRecords: maxUsers,
    maxAbsent: maxUnknownKeys,
    results,
    read: apiKeys.findActive,
  })
  const close = feed.subscribe(
    change => {
      const [kind, subject = ''] = change.split(' ')
      if (kind === 'user') byId.forget(Number(subject))
      else if (kind === 'key') byHash.forget(subject)
    },
    () => {
      byId.forgetAll()
      byHash.forgetAll()
    },
  )
  return {
    find,
    findOwner: tokenHash =>
      chain(byHash.get(tokenHash), apiKey => {
        if (apiKey === undefined) return undefined
        return chain(find(apiKey.userId), user => user && { user, apiKey })
      }),
    lastKnownKey: byHash.lastKnown,
    close,
  }
}
