// Free users whose day is spent, remembered until midnight UTC or until their record changes (CONTRACT §4).
import { LRUCache } from 'lru-cache'
import type { ChangeFeed } from '../backing/change-feed.ts'

export interface SpentUsers {
  /** The user's uses of the day are spent, by the record. @param day `YYYY-MM-DD` */
  has(userId: number, day: string): boolean
  /** To be called before the record is asked. @returns remembers what it refused, unless anything changed meanwhile */
  asking(): (userId: number, day: string) => void
}

interface Parts {
  feed: Pick<ChangeFeed, 'isTrusted' | 'subscribe'>
  /** Users at most; the least recently used goes first. */
  most: number
}

export function createSpentUsers({ feed, most }: Parts): SpentUsers {
  const spent = new LRUCache<number, string>({ max: most })
  // Of anybody: changes are rare, and one refusal that is not remembered costs one more look at the record.
  let changes = 0
  feed.subscribe(
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
  return {
    has: (userId, day) => feed.isTrusted() && spent.get(userId) === day,
    asking() {
      const before = changes
      return (userId, day) => {
        if (changes === before && feed.isTrusted()) spent.set(userId, day)
      }
    },
  }
}
