// Remembers which free users have no uses left today, until midnight UTC or until their record changes.
import { LRUCache } from 'lru-cache'
import type { ChangeFeed } from '../storage/change-feed.ts'

export interface ExhaustedUsers {
  /** Returns whether the user is known to have no uses left on that day. @param day `YYYY-MM-DD` */
  has(userId: number, day: string): boolean
  /**
   * Call this before the record is read. If the read finds no use left, call the returned function. It caches the
   * refusal, unless a record changed during the read.
   */
  beginRead(): (userId: number, day: string) => void
}

interface ExhaustedCache extends ExhaustedUsers {
  /** Unsubscribes from the change feed. The cache must not be used afterwards. */
  close(): void
}

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  maxUsers: number
}

/**
 * Creates the cache, which is valid for one daily limit only. Under a higher limit, the same users may have uses left.
 */
export function createExhaustedUsers({ feed, maxUsers }: Dependencies): ExhaustedCache {
  /** The day on which the user has no uses left. */
  const exhausted = new LRUCache<number, string>({ max: maxUsers })
  // One number counts the changes of all users, because changes are rare. If the change of another user keeps a refusal
  // from being cached, this costs only one more read of the record.
  let changeCount = 0
  const close = feed.subscribe(
    change => {
      changeCount += 1
      const [kind, name] = change.split(' ')
      if (kind === 'user') exhausted.delete(Number(name))
    },
    () => {
      changeCount += 1
      exhausted.clear()
    },
  )
  return {
    has: (userId, day) => feed.isFresh() && exhausted.get(userId) === day,
    beginRead() {
      const countBefore = changeCount
      return (userId, day) => {
        if (changeCount === countBefore && feed.isFresh()) exhausted.set(userId, day)
      }
    },
    close,
  }
}
