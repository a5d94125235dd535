// Caches users and the owners of API tokens until the database reports that they changed.
import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { User } from '../../users/user.ts'
import type { UserStore, UserWithEpoch } from '../../users/user-store.ts'
import type { ActiveApiToken, ApiTokenStore } from '../api-tokens/api-token-store.ts'
import { createRecordCache } from './record-cache.ts'

export interface ApiTokenOwner {
  user: User
  apiTokenId: number
}

/** Both methods return cached records synchronously. @throws StorageError, synchronously or in the promise */
export interface UserCache {
  /** Returns the active user with this id. */
  find(userId: number): MaybePromise<UserWithEpoch | undefined>
  /** Returns the active user of an active API token, by the token's hash. */
  findOwner(tokenHash: string): MaybePromise<ApiTokenOwner | undefined>
  close(): void
}

interface Dependencies {
  users: Pick<UserStore, 'findWithEpoch'>
  apiTokens: Pick<ApiTokenStore, 'findActive'>
  feed: ChangeFeed
  /**
   * The maximum number of users, and also of API tokens. When the cache is full, it removes the least recently used
   * entry.
   */
  maxUsers: number
  results: CacheResults
}

const maxUnknownTokens = 1_000

export function createUserCache({ users, apiTokens, feed, maxUsers, results }: Dependencies): UserCache {
  // Inactive users are cached too, because the database reports their reactivation. Unknown ids are not cached. The
  // database does not report the insertion of a user, and a restored database may reuse an id.
  const byId = createRecordCache<number, UserWithEpoch>({
    feed,
    maxRecords: maxUsers,
    maxAbsent: 0,
    results,
    read: users.findWithEpoch,
  })
  const find = (userId: number) => chain(byId.get(userId), user => (user?.is_active === 1 ? user : undefined))
  const byHash = createRecordCache<string, ActiveApiToken>({
    feed,
    maxRecords: maxUsers,
    maxAbsent: maxUnknownTokens,
    results,
    read: apiTokens.findActive,
  })
  const close = feed.subscribe(
    change => {
      const [kind, subject = ''] = change.split(' ')
      if (kind === 'user') byId.forget(Number(subject))
      else byHash.forget(subject)
    },
    () => {
      byId.forgetAll()
      byHash.forgetAll()
    },
  )
  return {
    find,
    findOwner: tokenHash =>
      chain(byHash.get(tokenHash), apiToken => {
        if (apiToken === undefined) return undefined
        return chain(find(apiToken.userId), user => user && { user, apiTokenId: apiToken.apiTokenId })
      }),
    close,
  }
}
