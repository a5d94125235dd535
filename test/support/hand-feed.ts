// A change feed for tests. The test sets the state of the feed, and sends the messages.
import type { ChangeFeed } from '../../src/storage/change-feed.ts'

export interface HandFeed extends ChangeFeed {
  /** Sets whether the feed is fresh. When the feed becomes fresh again, it reports a gap, like the real feed. */
  trust(isTrusted: boolean): void
  tell(change: string): void
}

export function handFeed(): HandFeed {
  const subscribers = new Set<{ listener: (change: string) => void; onGap: () => void }>()
  let trusted = true
  return {
    isFresh: () => trusted,
    subscribe(listener, onGap) {
      const subscriber = { listener, onGap }
      subscribers.add(subscriber)
      return () => subscribers.delete(subscriber)
    },
    catchUp: async () => {},
    close: async () => {},
    trust(isTrusted) {
      trusted = isTrusted
      if (isTrusted) for (const { onGap } of subscribers) onGap()
    },
    tell(change) {
      for (const { listener } of subscribers) listener(change)
    },
  }
}
