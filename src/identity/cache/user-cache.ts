// Users and the owners of API keys, remembered until the database says that they changed (CONTRACT §3).

import { andThen, type Soon } from '../../async/maybe-promise.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'
import type { User } from '../../users/user.ts'
import type { UserStore } from '../../users/user-store.ts'
import type { ApiTokenStore, LiveKey } from '../api-tokens/api-token-store.ts'
import { createRemembered } from './record-cache.ts'

export interface KeyOwner {
  user: User
  keyId: number
}

/** Both at once where it is remembered. @throws StorageError, now or in the promise */
export interface KnownUsers {
  /** The active user with an id. */
  find(userId: number): Soon<User | undefined>
  /** The active user of a live key, by the key's hash (spec §5). */
  findOwner(tokenHash: string): Soon<KeyOwner | undefined>
  /** Hears of no change more: nobody may ask after that. */
  close(): void
}

interface Parts {
  users: Pick<UserStore, 'findById'>
  apiTokens: Pick<ApiTokenStore, 'findLive'>
  feed: ChangeFeed
  /** Users at most, and as many keys; the least recently used goes first. */
  most: number
  results: CacheResults
}

/** Keys of nobody that are remembered. */
const mostAbsent = 1_000

export function createKnownUsers({ users, apiTokens, feed, most, results }: Parts): KnownUsers {
  // Inactive ones too, whose return is notified. An id of nobody is not remembered: a user's insertion is not, and an
  // id may come again where a database is restored.
  const byId = createRemembered<number, User>({ feed, most, mostAbsent: 0, results, read: users.findById })
  const find = (userId: number) =>
    andThen(byId.get(userId), user => (user?.is_active === 1 ? user : undefined))
  const byHash = createRemembered<string, LiveKey>({
    feed,
    most,
    mostAbsent,
    results,
    read: apiTokens.findLive,
  })
  const close = feed.subscribe(
    change => {
      const [kind, name = ''] = change.split(' ')
      if (kind === 'user') byId.forget(Number(name))
      else byHash.forget(name)
    },
    () => {
      byId.forgetAll()
      byHash.forgetAll()
    },
  )
  return {
    find,
    findOwner: tokenHash =>
      andThen(byHash.get(tokenHash), key => {
        if (key === undefined) return undefined
        return andThen(find(key.userId), user => user && { user, keyId: key.keyId })
      }),
    close,
  }
}
