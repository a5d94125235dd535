// Reads the stored keys again when the database says that they changed, so that every replica knows a key in time.
import type { ChangeFeed } from '../../storage/change-feed.ts'
import { KeyError } from './signing-key.ts'
import type { SigningKeys } from './signing-keys.ts'

interface Parts {
  keys: Pick<SigningKeys, 'reload'>
  feed: Pick<ChangeFeed, 'isTrusted' | 'subscribe'>
  /** Told where keys in the store have become unreadable; those in memory stay. */
  onError: (error: KeyError) => void
}

/** Returns what ends it. */
export function watchKeys({ keys, feed, onError }: Parts): () => void {
  let isStale = false
  let isReading = false

  async function read(): Promise<void> {
    if (isReading) return
    isReading = true
    let isAway = false
    // What changes while they are read is read once more.
    while (isStale && !isAway) {
      isStale = false
      await keys.reload().catch((error: unknown) => {
        if (error instanceof KeyError) onError(error)
        else isAway = true
      })
    }
    isStale ||= isAway
    isReading = false
  }

  function changed(): void {
    isStale = true
    void read()
  }

  const unsubscribe = feed.subscribe(change => change === 'signing_keys' && changed(), changed)
  // The timer is for when nobody tells, and for when the store was away.
  const timer = setInterval(() => {
    if (isStale || !feed.isTrusted()) changed()
  }, interval).unref()
  return () => {
    clearInterval(timer)
    unsubscribe()
  }
}

/** Milliseconds. */
const interval = 1_000
