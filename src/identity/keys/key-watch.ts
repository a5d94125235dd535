// Reloads the stored keys when the database reports a change, so that every replica learns of a key in time.
import type { ChangeFeed } from '../../storage/change-feed.ts'
import { KeyError } from './signing-key.ts'
import type { SigningKeys } from './signing-keys.ts'

interface Dependencies {
  keys: Pick<SigningKeys, 'reload'>
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  /** Called when keys in the store have become unreadable; the loaded keys stay. */
  onError: (error: KeyError) => void
}

/** Returns a function that stops the watch. */
export function watchKeys({ keys, feed, onError }: Dependencies): () => void {
  let isStale = false
  let isReading = false

  async function reloadWhileStale(): Promise<void> {
    if (isReading) return
    isReading = true
    let isStoreDown = false
    // A change during the read causes another read.
    while (isStale && !isStoreDown) {
      isStale = false
      await keys.reload().catch((error: unknown) => {
        if (error instanceof KeyError) onError(error)
        else isStoreDown = true
      })
    }
    isStale ||= isStoreDown
    isReading = false
  }

  function markStale(): void {
    isStale = true
    void reloadWhileStale()
  }

  const unsubscribe = feed.subscribe(change => change === 'signing_keys' && markStale(), markStale)
  // The timer covers a lost change feed and a store that was down.
  const timer = setInterval(() => {
    if (isStale || !feed.isFresh()) markStale()
  }, pollIntervalMs).unref()
  return () => {
    clearInterval(timer)
    unsubscribe()
  }
}

const pollIntervalMs = 1_000
