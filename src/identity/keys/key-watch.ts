// Reads the stored keys again when the database says that they changed, so that every replica knows a key in time.
import type { ChangeFeed } from '../../storage/change-feed.ts'
import { KeyError } from './signing-key.ts'
import type { SigningKeys } from './signing-keys.ts'

interface Dependencies {
  keys: Pick<SigningKeys, 'reload'>
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  /** Told where keys in the store have become unreadable; those in memory stay. */
  onError: (error: KeyError) => void
}

/** Returns what ends it. */
export function watchKeys({ keys, feed, onError }: Dependencies): () => void {
  let isStale = false
  let isReading = false

  async function reloadWhileStale(): Promise<void> {
    if (isReading) return
    isReading = true
    let isStoreDown = false
    // What changes while they are read is read once more.
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
  // The timer is for when nobody tells, and for when the store was away.
  const timer = setInterval(() => {
    if (isStale || !feed.isFresh()) markStale()
  }, pollIntervalMs).unref()
  return () => {
    clearInterval(timer)
    unsubscribe()
  }
}

/** Milliseconds. */
const pollIntervalMs = 1_000
