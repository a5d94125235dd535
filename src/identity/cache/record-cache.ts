// Records that are remembered until the database says that they changed (CONTRACT §3).
import { LRUCache } from 'lru-cache'
import type { CacheResults } from '../../observability/metrics/counters.ts'
import type { ChangeFeed } from '../../storage/change-feed.ts'

export interface RecordCache<K, V extends object> {
  /**
   * At once where it is remembered; of one key at most one read is under way while the feed is trusted, and one at a
   * time while it is not.
   * @throws whatever reading it throws, now or in the promise
   */
  get(key: K): V | undefined | Promise<V | undefined>
  forget(key: K): void
  forgetAll(): void
}

interface Options<K, V> {
  feed: Pick<ChangeFeed, 'isFresh'>
  /** Records at most; the least recently used goes first. */
  maxRecords: number
  /**
   * Keys of no record at most: apart, since anybody can think of them. 0 where the database does not say that a record
   * has come to be.
   */
  maxAbsent: number
  /** How look-ups end is counted there. */
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
  const present = new LRUCache<K, V>({ max: maxRecords })
  const absent = maxAbsent > 0 ? new LRUCache<K, true>({ max: maxAbsent }) : undefined
  /** Reads that began after the last change of their record: whoever asks now may wait for them. */
  const inFlight = new Map<K, Promise<V | undefined>>()

  function load(key: K): Promise<V | undefined> {
    const running: Promise<V | undefined> = read(key).then(
      value => {
        // Taken out by a change that was heard meanwhile: it may have seen the record before that.
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

  /** Without the feed nothing tells that a read in flight is too old for whoever asks now: that is the one after it. */
  const uncachedReads = new Map<K, { running: Promise<V | undefined>; next?: Promise<V | undefined> }>()

  function readUncached(key: K): Promise<V | undefined> {
    const turn = uncachedReads.get(key)
    if (turn === undefined) return startRead(key)
    // Where the one before fails it fails alike: a store that is away must not be waited for twice.
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
      const value = present.get(key)
      if (value !== undefined || absent?.get(key)) {
        results.hit += 1
        return value
      }
      results.miss += 1
      return inFlight.get(key) ?? load(key)
    },
    forget(key) {
      present.delete(key)
      absent?.delete(key)
      inFlight.delete(key)
    },
    forgetAll() {
      present.clear()
      absent?.clear()
      inFlight.clear()
    },
  }
}
