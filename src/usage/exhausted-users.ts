// Free users whose day is spent, remembered until midnight UTC or until their record changes (CONTRACT §4).
import { LRUCache } from 'lru-cache'
import type { ChangeFeed } from '../storage/change-feed.ts'

export interface ExhaustedUsers {
  /** The user's uses of the day are spent, by the record. @param day `YYYY-MM-DD` */
  has(userId: number, day: string): boolean
  /** To be called before the record is asked. @returns remembers what it refused, unless anything changed meanwhile */
  beginRead(): (userId: number, day: string) => void
}

export interface ExhaustedCache {
  /** For a limit that is in force from now on: what was remembered by another does not count (CONTRACT §4). */
  withLimit(): ExhaustedUsers
  /** Hears of no change more: nobody may ask after that. */
  close(): void
}

interface Dependencies {
  feed: Pick<ChangeFeed, 'isFresh' | 'subscribe'>
  /** Users at most; the least recently used goes first. */
  maxUsers: number
}

/** One memory for all limits: to make one of that size takes 20 ms, and a reload would hold requests up for it. */
export function createExhaustedCache({ feed, maxUsers }: Dependencies): ExhaustedCache {
  const exhausted = new LRUCache<number, string>({ max: maxUsers })
  // Of anybody: changes are rare, and one refusal that is not remembered costs one more look at the record.
  let changeCount = 0
  const close = feed.subscribe(
    change => {
      changeCount += 1
      const [kind, name] = change.split(' ')
      if (kind === 'user') exhausted.delete(Number(name))
    },
    () => {
      changeCount += 1
      exhausted.clear()
    },
  )
  let generations = 0
  return {
    withLimit() {
      generations += 1
      const generation = generations
      let taggedDay = ''
      let tag = ''
      /** The same text for all of a day: to compare it is to compare an address. */
      const tagOf = (day: string) => {
        if (day !== taggedDay) {
          taggedDay = day
          tag = `${day} ${generation}`
        }
        return tag
      }
      return {
        has: (userId, day) => feed.isFresh() && exhausted.get(userId) === tagOf(day),
        beginRead() {
          const countBefore = changeCount
          return (userId, day) => {
            if (changeCount === countBefore && feed.isFresh()) exhausted.set(userId, tagOf(day))
          }
        },
      }
    },
    close,
  }
}
