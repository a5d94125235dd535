// A change feed in a test's own hand: it says what the test says, when the test says it.
import type { ChangeFeed } from '../../src/backing/change-feed.ts'

export interface HandFeed extends ChangeFeed {
  /** Whether what is remembered counts. Its return is told as a gap, as the feed does. */
  trust(isTrusted: boolean): void
  tell(change: string): void
}

export function handFeed(): HandFeed {
  const listeners: ((change: string) => void)[] = []
  const gaps: (() => void)[] = []
  let trusted = true
  return {
    isTrusted: () => trusted,
    subscribe(listener, onGap) {
      listeners.push(listener)
      gaps.push(onGap)
    },
    catchUp: async () => {},
    close: async () => {},
    trust(isTrusted) {
      trusted = isTrusted
      if (isTrusted) for (const forget of gaps) forget()
    },
    tell(change) {
      for (const listener of listeners) listener(change)
    },
  }
}
