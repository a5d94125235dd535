// A change feed in a test's own hand: it says what the test says, when the test says it.
import type { ChangeFeed } from '../../src/storage/change-feed.ts'

export interface HandFeed extends ChangeFeed {
  /** Whether what is remembered counts. Its return is told as a gap, as the feed does. */
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
