// Decides whether one more free use is left today: Redis hints, the record in Postgres decides (CONTRACT §4).
import type { Clock } from '../clock.ts'
import type { FastCount } from './fast-count.ts'
import type { UsageRecord, UsageStore } from './usage-store.ts'
import { utcDay } from './utc-day.ts'

/** `used`: what is spent of today, after this use. `no_user`: there is no such row, so nothing was counted. */
export type Use =
  | { counted: true; used: number }
  | { counted: false; used: number; reason: 'spent' | 'no_user' }

export interface DailyCounter {
  /**
   * Counts one use of a free user today. A counted use is stored when this resolves.
   * @throws StorageError where the record cannot be reached: nothing may pass then
   */
  use(userId: number): Promise<Use>
}

interface Parts {
  store: UsageStore
  /** Absent where there is no Redis. */
  fast?: FastCount | undefined
  clock: Clock
  /** `limits.free_daily`: uses a UTC day. */
  limit: number
  /** Told each time that Redis failed and the record was asked alone. */
  onFallback(reason: unknown): void
}

/**
 * A pass needs the conditional update, and a refusal needs the record: so no state of Redis (down, wiped, an
 * older copy, one that ran ahead in a crash) grants a use too many or refuses one that is left.
 */
export function createDailyCounter({ store, fast, clock, limit, onFallback }: Parts): DailyCounter {
  const reads = createSingleFlight(store)

  async function hint(userId: number, day: string): Promise<'room' | 'full' | 'unknown'> {
    if (fast === undefined) return 'unknown'
    try {
      return await fast.reserve(userId, day, limit)
    } catch (error) {
      onFallback(error)
      return 'unknown'
    }
  }

  async function correct(userId: number, day: string, used: number): Promise<void> {
    try {
      await fast?.set(userId, day, used)
    } catch (error) {
      onFallback(error)
    }
  }

  return {
    async use(userId) {
      const day = utcDay(clock.now())
      const hinted = await hint(userId, day)
      if (hinted === 'full') {
        const record = await reads(userId, day)
        if (record === undefined) return { counted: false, used: 0, reason: 'no_user' }
        const spent = spentOn(record, day)
        if (spent >= limit) return { counted: false, used: spent, reason: 'spent' }
      }
      const outcome = await store.count(userId, day, limit)
      if (outcome === 'no_user') return { counted: false, used: 0, reason: 'no_user' }
      // The update saw the newest record: where it refused, nothing is left today (or the record is dated
      // tomorrow), whatever the copy of the record says that came back with the refusal.
      const spent = spentOn(outcome.record, day)
      const used = outcome.counted ? spent : Math.max(spent, limit)
      const agrees = hinted === 'room' && outcome.counted
      if (hinted !== 'unknown' && !agrees) await correct(userId, day, used)
      return outcome.counted ? { counted: true, used } : { counted: false, used, reason: 'spent' }
    },
  }
}

function spentOn({ daily_usage, last_usage_date }: UsageRecord, day: string): number {
  return last_usage_date === day ? daily_usage : 0
}

/** One read in flight for a user and day: a spent user who keeps trying must not fill the pool. */
function createSingleFlight(
  store: UsageStore,
): (userId: number, day: string) => Promise<UsageRecord | undefined> {
  const inFlight = new Map<string, Promise<UsageRecord | undefined>>()
  return (userId, day) => {
    const key = `${userId} ${day}`
    const running = inFlight.get(key)
    if (running !== undefined) return running
    const read = store.read(userId).finally(() => inFlight.delete(key))
    inFlight.set(key, read)
    return read
  }
}
