// Caches records until the database reports that they changed.
import { createLru } from '../../async/lru.ts'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'

interface RecordCache<K, V extends object> {
  /**
   * Returns a cached record synchronously. While the change feed is fresh, concurrent callers of one key share one
   * read. While the feed is not fresh, nothing is served from the cache, and the reads of one key run one after
   * another.
   * @throws errors of `read`, synchronously or in the promise
   */
  get(key: K): V | undefined | Promise<V | undefined>
  /**
   * Returns the record as it was last cached. If the change feed is not fresh, the record may be outdated.
   * @returns undefined if the record was not cached, was evicted, or was reported as changed
   */
  lastKnown(key: K): V | undefined
  forget(key: K): void
  forgetAll(): void
}

interface Options<K, V> {
  feed: Pick<ChangeFeed, 'isFresh'>
  maxRecords: number
  /**
   * The maximum number of cached keys without a record. These keys have their own limit, because a client can invent
   * any number of keys. Must be 0 if the database does not report insertions.
   */
  maxAbsent: number
  results: CacheResults
  read(key: K): Promise<V | undefined>
}

export function createRecordCache<K extends {}, V extends object>({
  feed,
  maxRecords,
  maxAbsent,
  results,
  read,
}: Options<K, V>): RecordCache<K, V> {
  const present = createLru<K, V>(maxRecords)
  /** Whether `present` must be cleared before the next use. Until then, only `lastKnown` reads it. */
  let isOutdated = false
  const absent = maxAbsent > 0 ? createLru<K, true>(maxAbsent) : undefined
  /** The running reads that began after the last change of their record. New callers may share these reads. */
  const inFlight = new Map<K, Promise<V | undefined>>()

  function load(key: K): Promise<V | undefined> {
    const running: Promise<V | undefined> = read(key).then(
      value => {
        // If `inFlight` no longer contains this read, the database reported a change during the read. The value may be
        // older than the change, so it is not cached.
        if (inFlight.get(key) !== running) return value
        inFlight.delete(key)
        if (!feed.isFresh()) return value
        if (value === undefined) absent?.set(key, true)
        else present.set(key, value)
        return value
      },
      error => {
        if (inFlight.get(key) === running) inFlight.delete(key)
        throw error
      },
    )
    inFlight.set(key, running)
    return running
  }

  /**
   * The reads while the change feed is not fresh. A running read may have begun before a change that a new caller must
   * see. So new callers share the next read, which starts after the running read.
   */
  const uncachedReads = new Map<K, { running: Promise<V | undefined>; next?: Promise<V | undefined> }>()

  function readUncached(key: K): Promise<V | undefined> {
    const turn = uncachedReads.get(key)
    if (turn === undefined) return startRead(key)
    // If the running read fails, the next read fails with the same error. So callers do not wait twice for a store that
    // is down.
    turn.next ??= turn.running.then(() => startRead(key))
    return turn.next
  }

  function startRead(key: K): Promise<V | undefined> {
    const turn: { running: Promise<V | undefined>; next?: Promise<V | undefined> } = { running: read(key) }
    uncachedReads.set(key, turn)
    turn.running.then(
      () => turn.next === undefined && uncachedReads.delete(key),
      () => uncachedReads.delete(key),
    )
    return turn.running
  }

  return {
    get(key) {
      if (!feed.isFresh()) {
        results.bypass += 1
        return readUncached(key)
      }
      if (isOutdated) present.clear()
      isOutdated = false
      const value = present.get(key)
      if (value !== undefined || absent?.get(key)) {
        results.hit += 1
        return value
      }
      results.miss += 1
      return inFlight.get(key) ?? load(key)
    },
    lastKnown: key => present.peek(key),
    forget(key) {
      present.delete(key)
      absent?.delete(key)
      inFlight.delete(key)
    },
    forgetAll() {
      isOutdated = true
      absent?.clear()
      inFlight.clear()
    },
  }
}
