// Remembers refusals of users who have no uses left, until their record changes.
import { createLru } from '../async/lru.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'

/** Remembers one value per key, for example the day on which a user has no uses left. */
export interface RefusalCache<Key, Value> {
  /** @returns undefined if nothing is known about the key, or if a change may have been missed */
  get(key: Key): Value | undefined
  /**
   * Call this before the record is read. If the read finds no use left, call the returned function. It caches the
   * refusal, unless a record changed during the read.
   */
  beginRead(): (key: Key, value: Value) => void
  /** Call this when a use of the key was counted. The uses of a cached refusal are then outdated. */
  forget(key: Key): void
}

export interface OpenRefusalCache<Key, Value> extends RefusalCache<Key, Value> {
  /** Unsubscribes from the change feed. The cache must not be used afterwards. */
  close(): void
}

interface Options<Key> {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  maxKeys: number
  /** Returns the key that a change of the database concerns. @param change for example `user 1` */
  changedKey(change: string): Key | undefined
}

/** The values must be valid until the record changes, or contain the time or limit for which they are valid. */
export function createRefusalCache<Key extends {}, Value extends {}>({
  feed,
  maxKeys,
  changedKey,
}: Options<Key>): OpenRefusalCache<Key, Value> {
  const values = createLru<Key, Value>(maxKeys)
  // One number counts the changes of all records, because changes are rare. If the change of another record keeps a
  // refusal from being cached, this costs only one more read of the record.
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
