// Free users whose day is spent, remembered until midnight UTC or until their record changes (CONTRACT §4).
import { LRUCache } from 'lru-cache'
import type { ChangeFeed } from '../storage/change-feed.ts'

export interface SpentUsers {
  /** The user's uses of the day are spent, by the record. @param day `YYYY-MM-DD` */
  has(userId: number, day: string): boolean
  /** To be called before the record is asked. @returns remembers what it refused, unless anything changed meanwhile */
  asking(): (userId: number, day: string) => void
}

export interface SpentMemory {
  /** For a limit that is in force from now on: what was remembered by another does not count (CONTRACT §4). */
  forLimit(): SpentUsers
  /** Hears of no change more: nobody may ask after that. */
  close(): void
}

interface Parts {
  feed: Pick<ChangeFeed, 'isTrusted' | 'subscribe'>
  /** Users at most; the least recently used goes first. */
  most: number
}

/** One memory for all limits: to make one of that size takes 20 ms, and a reload would hold requests up for it. */
export function createSpentMemory({ feed, most }: Parts): SpentMemory {
  const spent = new LRUCache<number, string>({ max: most })
  // Of anybody: changes are rare, and one refusal that is not remembered costs one more look at the record.
  let changes = 0
  const close = feed.subscribe(
    change => {
      changes += 1
      const [kind, name] = change.split(' ')
      if (kind === 'user') spent.delete(Number(name))
    },
    () => {
      changes += 1
      spent.clear()
    },
  )
  let limits = 0
  return {
    forLimit() {
      limits += 1
      const limit = limits
      let markedDay = ''
      let mark = ''
      /** The same text for all of a day: to compare it is to compare an address. */
      const markOf = (day: string) => {
        if (day !== markedDay) {
          markedDay = day
          mark = `${day} ${limit}`
        }
        return mark
      }
      return {
        has: (userId, day) => feed.isTrusted() && spent.get(userId) === markOf(day),
        asking() {
          const before = changes
          return (userId, day) => {
            if (changes === before && feed.isTrusted()) spent.set(userId, markOf(day))
          }
        },
      }
    },
    close,
  }
}
