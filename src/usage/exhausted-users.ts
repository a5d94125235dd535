// Remembers which free users have no uses left today, until midnight UTC or until their record changes.
import type { ChangeFeed } from '../storage/change-feed.ts'
import { createRefusalCache, type OpenRefusalCache, type RefusalCache } from './refusal-cache.ts'

/** Contains the day (`YYYY-MM-DD` in UTC) on which the user with this ID has no uses left. */
export type ExhaustedUsers = RefusalCache<number, string>

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  maxUsers: number
}

/**
 * Creates the cache, which is valid for one daily limit only. Under a higher limit, the same users may have uses left.
 */
export function createExhaustedUsers({ feed, maxUsers }: Dependencies): OpenRefusalCache<number, string> {
  return createRefusalCache({
    feed,
    maxKeys: maxUsers,
    changedKey(change) {
      const [kind, id] = change.split(' ')
      return kind === 'user' ? Number(id) : undefined
    },
  })
}
