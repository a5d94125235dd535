// Users and the owners of API keys, remembered until the database says that they changed (CONTRACT §3).

import { chain, type MaybePromise } from '../../async/maybe-promise.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { User } from '../../users/user.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { ActiveApiToken, ApiTokenStore } from '../api-tokens/api-token-store.ts'
import { createRecordCache } from './record-cache.ts'

export interface ApiTokenOwner {
  user: User
  apiTokenId: number
}

/** Both at once where it is remembered. @throws StorageError, now or in the promise */
export interface UserCache {
  /** The active user with an id. */
  find(userId: number): MaybePromise<User | undefined>
  /** The active user of a live key, by the key's hash (spec §5). */
  findOwner(tokenHash: string): MaybePromise<ApiTokenOwner | undefined>
  /** Hears of no change more: nobody may ask after that. */
  close(): void
}

interface Dependencies {
  users: Pick<UserStore, 'findById'>
  apiTokens: Pick<ApiTokenStore, 'findActive'>
  feed: ChangeFeed
  /** Users at most, and as many keys; the least recently used goes first. */
  maxUsers: number
  results: CacheResults
}

/** Keys of nobody that are remembered. */
const maxUnknownTokens = 1_000

export function createUserCache({ users, apiTokens, feed, maxUsers, results }: Dependencies): UserCache {
  // Inactive ones too, whose return is notified. An id of nobody is not remembered: a user's insertion is not, and an
  // id may come again where a database is restored.
  const byId = createRecordCache<number, User>({
    feed,
    maxRecords: maxUsers,
    maxAbsent: 0,
    results,
    read: users.findById,
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
