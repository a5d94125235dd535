// Caches free users without uses left today, until midnight UTC or until their record changes (CONTRACT §4).
import { LRUCache } from 'lru-cache'
import type { ChangeFeed } from '../storage/change-feed.ts'

export interface ExhaustedUsers {
  /** Whether the record showed no uses left on that day. @param day `YYYY-MM-DD` */
  has(userId: number, day: string): boolean
  /** Call before the record is read. @returns a callback that caches a refusal, unless a record changed meanwhile */
  beginRead(): (userId: number, day: string) => void
}

interface ExhaustedCache extends ExhaustedUsers {
  /** Unsubscribes from the change feed: the cache must not be used afterwards. */
  close(): void
}

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  /** The least recently used is evicted first. */
  maxUsers: number
}

/** For one limit: who has no use left under it may have some under another (CONTRACT §4). */
export function createExhaustedUsers({ feed, maxUsers }: Dependencies): ExhaustedCache {
  /** The day on which each of them has no uses left. */
  const exhausted = new LRUCache<number, string>({ max: maxUsers })
  // Counts changes of all users: they are rare, and a refusal that is not cached costs one more read of the record.
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
