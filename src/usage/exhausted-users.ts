// Remembers which free users have no uses left today, until midnight UTC or until their record changes.
import type { ChangeFeed } from '../storage/change-feed.ts'
import { createRefusalCache, type OpenRefusalCache, type RefusalCache } from './refusal-cache.ts'

/** Contains, for the ID of a user, the UTC day (`YYYY-MM-DD`) on which this user has no uses left. */
export type ExhaustedUsers = RefusalCache<number, string>

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  maxUsers: number
}

/**
 * Creates a cache for one value of the daily limit. If the limit is raised, a new cache is needed, because the users
 * may have uses left again.
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
