// Remembers refusals of users who have no uses left, until their record changes.
import { createLru } from '../async/lru.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'

/** Remembers which keys are refused. The value of a key is, for example, the day on which a user has no uses left. */
export interface RefusalCache<Key, Value> {
  /** @returns undefined if no refusal of the key is cached, or if the cache may have missed a change of a record */
  get(key: Key): Value | undefined
  /**
   * Call this before you read a record. If the user has no use left, call the returned function to cache the refusal.
   * It caches nothing if any record changed during the read.
   */
  beginRead(): (key: Key, value: Value) => void
  /**
   * Call this when a use of the key was counted. It removes the cached refusal, which contains an outdated number of
   * uses.
   */
  forget(key: Key): void
}

export interface OpenRefusalCache<Key, Value> extends RefusalCache<Key, Value> {
  /** Unsubscribes from the change feed. The cache must not be used afterwards. */
  close(): void
}

interface Options<Key> {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  maxKeys: number
  /** Returns the key whose record changed; undefined for other changes. @param change for example `user 1` */
  changedKey(change: string): Key | undefined
}

/**
 * A cached value must be valid until the record changes. Otherwise, it must contain the time or the limit for which it
 * is valid, so that the reader can check this.
 */
export function createRefusalCache<Key extends {}, Value extends {}>({
  feed,
  maxKeys,
  changedKey,
}: Options<Key>): OpenRefusalCache<Key, Value> {
  const values = createLru<Key, Value>(maxKeys)
  // One number counts the changes of all records, because changes are rare. If another record changes during a read,
  // the refusal is not cached, and this costs only one more read later.
  let changeCount = 0
  const close = feed.subscribe(
    change => {
      changeCount += 1
      const key = changedKey(change)
      if (key !== undefined) values.delete(key)
    },
    () => {
      changeCount += 1
      values.clear()
    },
  )
  return {
    get: key => (feed.isFresh() ? values.get(key) : undefined),
    beginRead() {
      const countBefore = changeCount
      return (key, value) => {
        if (changeCount === countBefore && feed.isFresh()) values.set(key, value)
      }
    },
    forget: key => values.delete(key),
    close,
  }
}
